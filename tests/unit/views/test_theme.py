"""The colours of figures."""

import pytest

from workbench.views import theme

WHITE, SHADED = 1.0, 0.87  # luminance of paper, and of what is extrapolated


def luminance(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(colour, paper):
    return (paper + 0.05) / (luminance(colour) + 0.05)


@pytest.mark.parametrize("colour", [theme.BLUE, theme.VERMILLION, theme.GREEN, theme.BLACK, theme.GREY])
def test_words_about_a_line_can_be_read(colour):
    assert contrast(colour, WHITE) >= 3
    assert contrast(theme.ink(colour), WHITE) >= 4.5
    assert contrast(theme.ink(colour), SHADED) >= 4.4
