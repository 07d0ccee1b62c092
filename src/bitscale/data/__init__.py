"""Datasets: lazy images with labels, each under a named protocol.

`load_dataset` gives a `Split`, `datasets` says what is here and what is missing, `fetch_dataset` brings it.
"""

from bitscale.data.catalogue import FetchReport, dataset_names, datasets, fetch_dataset, load_dataset
from bitscale.data.images import as_images, batches, read
from bitscale.data.info import DatasetInfo, DatasetStatus
from bitscale.data.labelled import Attribute, Images, Labelled, relevance
from bitscale.data.root import data_root
from bitscale.data.sets.array import load_array, read_array
from bitscale.data.sets.folder import load_folder, read_folder
from bitscale.data.split import PROTOCOLS, SEED, LeftOut, Split

__all__ = [
    "PROTOCOLS",
    "SEED",
    "Attribute",
    "DatasetInfo",
    "DatasetStatus",
    "FetchReport",
    "Images",
    "Labelled",
    "LeftOut",
    "Split",
    "as_images",
    "batches",
    "data_root",
    "dataset_names",
    "datasets",
    "fetch_dataset",
    "load_array",
    "load_dataset",
    "load_folder",
    "read",
    "read_array",
    "read_folder",
    "relevance",
]
