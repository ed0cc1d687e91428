import unittest

from slug import slug


class Slug(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slug("Two Words"), "two-words")

    def test_ends(self):
        self.assertEqual(slug(" Two Words "), "two-words")
