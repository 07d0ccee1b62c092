"""The datasets, one file each; `bitscale.data.catalogue` lists them."""
