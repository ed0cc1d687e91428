# Format junit: results from a report file, which is removed before the test and read after everything that the test started is dead.

runtime "python" {
  host {}
  probe = ["python3", "--version"]
  env   = { PYTHONDONTWRITEBYTECODE = "1" }
}

instance "slug" {
  source {
    dir { path = "base" }
  }
  fix {
    dir { path = "fix" }
  }
  test_files        = ["tests/**"]
  problem_statement = "slug() keeps spaces at the ends."
  runtime           = runtime.python
  test {
    command      = ["python3", "tests/run.py"]
    format       = "junit"
    report       = "report.xml"
    fail_to_pass = ["tests/test_slug.py::Slug::test_ends"]
    pass_to_pass = ["tests/test_slug.py::Slug::test_words"]
  }
}

# The hidden test must fail on base and pass after the gold patch.
gate "all" {
  instances = instance.slug
}

agent "oracle" { kind = "oracle" }
agent "nop" { kind = "nop" }

matrix "controls" {
  instances = gate.all
  agents    = [agent.oracle, agent.nop]
}

report "controls" {
  matrix = matrix.controls
}
