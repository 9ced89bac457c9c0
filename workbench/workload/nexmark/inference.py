"""An inference pipeline on images, after the third query of CAPSys: CPU-bound stages separated by shuffles.

Rows are compressed grayscale images of handwritten digits. Stages: decode and transform, shuffle, resize and compress,
shuffle, infer with a scikit-learn model trained on the digits that ship with scikit-learn. Images come from a pool
made from digits the model has not seen, so its predictions can be checked.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.workload.nexmark.events import Draws
from workbench.workload.query import EventClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CELL, SIDE = 8, 64  # sides of the digits that the model reads, and of the images

TRAINING = 1_297  # number of digits that train the model; the other 500 make the images

BATCH_ROWS = 1_000

_GREYS, _STEP = 16, 15  # a digit's pixel is 0 to 16; an image's pixel is 15 times as large, plus noise below 15
_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [("image_id", pa.int64()), ("label", pa.int32()), ("side", pa.int32()), ("image", pa.binary()), ("dateTime", _TIME)]
)
_STAGE = "image_id long, label int, side int, image binary, dateTime timestamp"
_RESULT = "image_id long, label int, prediction int, confidence double, dateTime timestamp"


@dataclass(frozen=True)
class ImageGenerator:
    """Makes rows of compressed images; `seed` decides which, and their noise."""

    seed: int = 0

    def schema(self) -> pa.Schema:
        """Columns of the batches."""
        return SCHEMA

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Rows `first` to `last` (exclusive) in order, with event times from `clock`."""
        images, labels = _pool(self.seed)
        for start in range(first, last, BATCH_ROWS):
            rows = np.arange(start, min(start + BATCH_ROWS, last), dtype=np.int64)
            chosen = Draws(self.seed, rows).below(0, len(labels))
            columns = [
                pa.array(rows),
                pa.array(labels[chosen]),
                pa.array(np.full(len(rows), SIDE, dtype=np.int32)),
                images.take(pa.array(chosen)),
                pa.array(clock.times_us(rows)).view(_TIME),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=4)
def _pool(seed: int) -> tuple[pa.BinaryArray, npt.NDArray[np.int32]]:
    """Make the images and their labels: enlarged digits, dark on light, with noise, compressed."""
    digits, labels = _digits()
    digits, labels = digits[TRAINING:], labels[TRAINING:]
    scale = SIDE // CELL
    large = np.kron(digits.reshape(-1, CELL, CELL), np.ones((1, scale, scale), dtype=np.uint8)) * _STEP
    noise = Draws(seed, np.arange(large.size, dtype=np.int64)).below(1, _STEP).reshape(large.shape)
    pixels = (255 - np.minimum(large + noise, 255)).astype(np.uint8)
    return pa.array([zlib.compress(image.tobytes(), 1) for image in pixels], pa.binary()), labels


@lru_cache(maxsize=1)
def _digits() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    from sklearn.datasets import load_digits  # noqa: PLC0415  slow to import, and only images need it

    data = load_digits()
    return data.data.astype(np.int64), data.target.astype(np.int32)


@lru_cache(maxsize=1)
def trained_model() -> Any:  # noqa: ANN401  scikit-learn has no types
    """Train the classifier of digits, with the same coefficients every time."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  slow to import

    digits, labels = _digits()
    return LogisticRegression(max_iter=300).fit(digits[:TRAINING] / _GREYS, labels[:TRAINING])


def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode images and make them light on dark."""
    for batch in batches:
        pixels = [255 - np.frombuffer(zlib.decompress(image), np.uint8) for image in batch["image"].to_pylist()]
        yield _with_images(batch, [image.tobytes() for image in pixels], batch["side"])


def shrink(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Resize images to 8 by 8 by averaging, and compress them."""
    for batch in batches:
        small = []
        for image, side in zip(batch["image"].to_pylist(), batch["side"].to_pylist(), strict=True):
            cells = np.frombuffer(image, np.uint8).reshape(CELL, side // CELL, CELL, side // CELL)
            small.append(zlib.compress(cells.mean(axis=(1, 3)).round().astype(np.uint8).tobytes()))
        yield _with_images(batch, small, pa.array(np.full(batch.num_rows, CELL, dtype=np.int32)))


def infer(batches: Iterator[pa.RecordBatch], model: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    """Decompress images and let `model` read the digit."""
    for batch in batches:
        if not batch.num_rows:
            continue
        texts = b"".join(zlib.decompress(image) for image in batch["image"].to_pylist())
        features = np.frombuffer(texts, np.uint8).reshape(-1, CELL * CELL) / (_STEP * _GREYS)
        shares = model.predict_proba(features)
        columns = [
            batch["image_id"],
            batch["label"],
            pa.array(model.classes_[shares.argmax(axis=1)].astype(np.int32)),
            pa.array(shares.max(axis=1)),
            batch["dateTime"],
        ]
        yield pa.RecordBatch.from_arrays(columns, names=[one.split()[0] for one in _RESULT.split(", ")])


def _with_images(batch: pa.RecordBatch, images: list[bytes], side: pa.Array) -> pa.RecordBatch:
    columns = [batch["image_id"], batch["label"], side, pa.array(images, pa.binary()), batch["dateTime"]]
    return pa.RecordBatch.from_arrays(columns, names=SCHEMA.names)


def build_inference(rows: "DataFrame") -> "DataFrame":
    """Read the digits on images, stateless: decode and transform, shuffle, resize and compress, shuffle, infer."""
    model = trained_model()

    def inferred(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return infer(batches, model)

    decoded = rows.mapInArrow(decode, _STAGE).repartition("image_id")
    small = decoded.mapInArrow(shrink, _STAGE).repartition("image_id")
    return small.mapInArrow(inferred, _RESULT)
