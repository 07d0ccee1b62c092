"""Search your own pictures: a folder in, a collection on disk, found again at any code length."""

from pathlib import Path

from PIL import Image

import bitscale as bs

split = bs.load_dataset("sample")  # pictures of clothes that come with bitscale
folder = Path("pictures")
folder.mkdir()
for i in range(300):
    Image.fromarray(split.query.images[i][..., 0]).save(folder / f"{i:03d}.png")

with bs.Collection.create("clothes.bsc", bs.load_hasher("fashion-mnist")) as clothes:
    changes = clothes.add(folder)
    print(f"{changes.added} pictures taken in, {len(changes.skipped)} skipped")
    for bits in (64, 16, 8):
        matches = clothes.search(folder / "000.png", k=4, bits=bits)[0]
        print(f"{bits:2} bits:", ", ".join(f"{Path(m.item.path).name} at {m.distance:.2f}" for m in matches))

    (folder / "000.png").rename(folder / "moved.png")
    print("again:", clothes.add(folder))  # only what changed is looked at
    clothes.backup("clothes-copy.bsc")

with bs.Collection.open("clothes-copy.bsc", read_only=True) as copy:
    print(len(copy), "items in the copy, sound:", copy.verify().ok)
