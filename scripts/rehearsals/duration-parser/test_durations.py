"""What a duration means."""

# ruff: noqa: PT009, PT027 - these tests run with the standard library alone.

import unittest

from durations import seconds_of


class Durations(unittest.TestCase):
    """Texts and the seconds they stand for."""

    def test_one_part(self) -> None:
        """A number and a unit."""
        self.assertEqual(seconds_of("90s"), 90)
        self.assertEqual(seconds_of("2d"), 172_800)

    def test_several_parts_add_up(self) -> None:
        """Every part counts."""
        self.assertEqual(seconds_of("1h30m"), 5_400)

    def test_anything_else_is_refused(self) -> None:
        """Also when it begins well."""
        for text in ("", "soon", "1h and a bit"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                seconds_of(text)
