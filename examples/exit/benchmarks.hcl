# Format exit: a test passes iff its command exits with 0. It cannot tell a failing test from one that does not start.

runtime "sh" {
  host {}
  probe = ["uname", "-sm"]
}

instance "greet" {
  source {
    dir { path = "base" }
  }
  fix {
    dir { path = "fix" }
  }
  test_files        = ["check.sh"]
  problem_statement = "greet.sh greets nobody."
  runtime           = runtime.sh
  test {
    command = ["sh", "check.sh"]
    format  = "exit"
  }
}

# The hidden test must fail on base and pass after the gold patch.
gate "all" {
  instances = instance.greet
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
