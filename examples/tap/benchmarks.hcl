# Format tap: results by description, leaves only. Zero tests are never a pass.

runtime "sh" {
  host {}
  probe = ["uname", "-sm"]
}

instance "max" {
  source {
    dir { path = "base" }
  }
  fix {
    dir { path = "fix" }
  }
  test_files        = ["test.sh"]
  problem_statement = "max.sh prints the smaller number."
  runtime           = runtime.sh
  test {
    command      = ["sh", "test.sh"]
    format       = "tap"
    fail_to_pass = ["the larger comes second"]
    pass_to_pass = ["equal numbers"]
  }
}

# The hidden test must fail on base and pass after the gold patch.
gate "all" {
  instances = instance.max
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
