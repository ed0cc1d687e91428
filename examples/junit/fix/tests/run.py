"""Run the tests with unittest alone, and write what a JUnit reporter writes."""
import sys
import unittest
from xml.sax.saxutils import quoteattr

sys.path[:0] = [".", "tests"]


class Results(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.cases = []

    def add(self, test, inner=""):
        cls, name = type(test).__qualname__, test._testMethodName
        self.cases.append(f"<testcase classname={quoteattr('tests.test_slug.' + cls)} name={quoteattr(name)}>{inner}</testcase>")

    def addSuccess(self, test):
        self.add(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.add(test, f"<failure message={quoteattr(str(err[1]))}/>")

    def addError(self, test, err):
        super().addError(test, err)
        self.add(test, f"<error message={quoteattr(str(err[1]))}/>")


results = Results()
unittest.defaultTestLoader.loadTestsFromName("test_slug").run(results)
with open("report.xml", "w") as f:
    f.write("<testsuites><testsuite>" + "".join(results.cases) + "</testsuite></testsuites>")
sys.exit(0 if results.wasSuccessful() else 1)
