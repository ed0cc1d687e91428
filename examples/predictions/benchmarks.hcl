# Predictions that others made: SWE-bench .json and .jsonl, and mini-SWE-agent's preds.json. The second instance has no prediction by one of the models:
# its outcome is `missing`, not a failure.

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

agent "right" {
  kind = "predictions"
  file = "right.jsonl"
}

agent "partial" {
  kind = "predictions"
  file = "preds.json"
}

matrix "models" {
  instances = gate.all
  agents    = [agent.right, agent.partial]
}

report "models" {
  matrix  = matrix.models
  formats = ["md", "csv", "json"]
}
