# Fourteen real fixes of public Go modules, gated and evaluated on this machine: `go run . apply`.
#
# A row names a module, the release before a fix and the release with it. pbuild derives the gold patch and the hidden
# test patch from the two trees, so no foreign code is stored here.

dataset "go_fixes" {
  file = "go-fixes.jsonl"
  key  = "id"
}

instance "go" {
  for_each = dataset.go_fixes

  source {
    gomod {
      path    = each.value.module
      version = each.value.base_version
      sum     = each.value.base_sum
    }
  }
  fix {
    gomod {
      path    = each.value.module
      version = each.value.fix_version
      sum     = each.value.fix_sum
    }
  }

  # What of base -> fix is the hidden test patch. The rest is the gold patch.
  test_files = ["**/*_test.go", "**/testdata/**"]
  test_data  = each.value.test_data

  problem_statement = each.value.description

  runtime = runtime.go

  # Only fetch sees the network: for base, and where no agent looks, for the gold state.
  fetch {
    command = ["go", "mod", "download", "all"]
    timeout = "10m"
  }
  prepare {
    command = ["go", "build", "./..."]
    env     = { GOPROXY = "off" }
    timeout = "10m"
  }
  build {
    command = ["go", "build", "./..."]
    env     = { GOPROXY = "off" }
    timeout = "5m"
  }
  test {
    command      = concat(["go", "test", "-json", "-count=1", "-vet=off"], each.value.packages)
    format       = "gotest"
    env          = { GOPROXY = "off" }
    fail_to_pass = each.value.fail_to_pass
    timeout      = "5m"
  }
}

# The hidden test fails on base and passes once the gold patch is in. What does not is left out, with its reason.
gate "go" {
  instances       = instance.go
  compile_failure = "admit" # a test that does not compile against base counts as failing
  on_reject       = "exclude"
}

# Controls: the oracle must resolve everything that the gate admits, nop nothing.
agent "oracle" { kind = "oracle" }
agent "nop" { kind = "nop" }

matrix "controls" {
  instances = gate.go
  agents    = [agent.oracle, agent.nop]
}

report "controls" {
  matrix  = matrix.controls
  formats = ["md", "csv", "json"]
}
