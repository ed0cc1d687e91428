# An agent that is a program: it runs in the instance's runtime over the base tree, reads the problem statement from the file that
# PBUILD_PROBLEM_STATEMENT names, and edits files. What it changes is the candidate patch.

runtime "sh" {
  host {}
  probe = ["uname", "-sm"]
}

# SWE-bench rows bring their patches with them.
dataset "rows" {
  file   = "rows.jsonl"
  format = "swe-bench"
}

instance "greet" {
  for_each = dataset.rows
  source {
    dir { path = "base" }
  }
  gold_patch        = each.value.patch
  test_patch        = each.value.test_patch
  problem_statement = each.value.problem_statement
  runtime           = runtime.sh
  test {
    command = ["sh", "check.sh"]
    format  = "exit"
  }
}

gate "all" {
  instances = instance.greet
}

agent "sed" {
  kind       = "command"
  command    = ["sh", "-c", "grep -q 'greets nobody' \"$PBUILD_PROBLEM_STATEMENT\" && sed -i 's/Hello, /Hello, $1/' greet.sh"]
  wall_limit = "1m"
}

agent "nop" { kind = "nop" }

matrix "agents" {
  instances = gate.all
  agents    = [agent.sed, agent.nop]
}

report "agents" {
  matrix = matrix.agents
}
