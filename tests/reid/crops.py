"""Made-up crops: each person is two stripes of colour, each camera has its own light; nobody real is on them."""

import numpy as np
from PIL import Image

SIZE = (32, 12)


def crop(person, camera, shot, size=SIZE):
    """A crop of a person that does not exist, (H, W, 3)."""
    rng = np.random.default_rng([person, 1])
    top, bottom = rng.integers(30, 226, (2, 3))
    noise = np.random.default_rng([person, camera, shot, 2]).integers(-12, 13, (*size, 3))
    picture = np.empty((*size, 3), np.int64)
    picture[: size[0] // 2], picture[size[0] // 2 :] = top, bottom
    return np.clip(picture + noise + 10 * camera, 0, 255).astype(np.uint8)


def save(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def cuhk03_folder(root, persons=12, shots=(0, 1, 5, 6), parts=("labeled/train",)):
    """labeled/train/0012_03.jpg and so on."""
    for part in parts:
        for person in range(persons):
            for shot in shots:
                save(root / part / f"{person:04d}_{shot:02d}.png", crop(person, shot // 5, shot))
    return root


def market_folder(root, persons=8, cameras=(1, 2, 3)):
    """0002_c1s1_000451_03.png: person, camera, frame."""
    for person in range(1, persons + 1):
        for camera in cameras:
            for shot in range(2):
                frame = 1_000 * camera + 100 * person + 25 * shot
                save(root / f"{person:04d}_c{camera}s1_{frame:06d}_00.png", crop(person, camera, shot))
    return root


def cuhk03_mat(path, pairs=(4, 3), shots=10, empty=((0, 0, 9),), testsets=2, boxes=("labeled", "detected")):
    """cuhk-03.mat as MATLAB 7.3 writes it: cells of references, everything transposed, a text of 512 bytes before."""
    import h5py

    with h5py.File(path, "w", userblock_size=512) as file:
        kept = file.create_group("#refs#")

        def reference(array):
            name = f"r{len(kept)}"
            kept.create_dataset(name, data=array)
            return kept[name].ref

        for box in boxes:
            tables = []
            for pair, persons in enumerate(pairs):
                cells = np.empty((shots, persons), h5py.ref_dtype)
                for person in range(persons):
                    for shot in range(shots):
                        picture = crop(100 * pair + person, shot // 5, shot).transpose(2, 1, 0)
                        nothing = np.zeros(2, np.uint64)
                        cells[shot, person] = reference(nothing if (pair, person, shot) in empty else picture)
                tables.append(reference(cells))
            file.create_dataset(box, data=np.array([tables], h5py.ref_dtype))
        sets = [reference(np.array([[1, 1], [1, 2]], np.float64).T) for _ in range(testsets)]
        file.create_dataset("testsets", data=np.array([sets], h5py.ref_dtype))
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64, made by a test".ljust(124) + b"\x00\x02IM")
    return path
