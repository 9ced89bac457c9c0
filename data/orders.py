"""Writes the sample ``orders.csv`` to standard output: invented orders of a web shop, the same ones every time."""

import csv
import random
import sys
from datetime import UTC, datetime, timedelta

ROWS, SHOPS, PRODUCTS = 1500, 40, 200
BEGIN = datetime(2026, 3, 2, 9, tzinfo=UTC)


def main() -> None:
    """Write the orders; a few shops have most of them, and some orders come a little late."""
    draw = random.Random(11)
    weights = [1 / rank for rank in range(1, SHOPS + 1)]
    prices = [round(draw.lognormvariate(2.8, 0.7), 2) for _ in range(PRODUCTS)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["time", "order_id", "shop", "product", "quantity", "price"])
    for number in range(ROWS):
        time = BEGIN + timedelta(seconds=1.2 * number - (draw.expovariate(0.5) if draw.random() < 0.1 else 0))
        shop = draw.choices(range(SHOPS), weights)[0]
        product = draw.randrange(PRODUCTS)
        writer.writerow(
            [
                time.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
                100_000 + number,
                f"shop-{shop:02d}",
                f"product-{product:03d}",
                min(9, 1 + int(draw.expovariate(0.9))),
                f"{prices[product]:.2f}",
            ]
        )


if __name__ == "__main__":
    main()
