# Format gotest: the event stream of `go test -json`. TestX is in the package at the root, dir:TestX in the package in dir.

runtime "go" {
  host {}
  probe = ["go", "env", "GOVERSION", "GOOS", "GOARCH"]
  env = {
    GOPROXY     = "off"
    GOTOOLCHAIN = "local"
  }
  # Once for all instances: an empty test compiles what every `go test` needs of the standard library, and nothing more. With -vet=off, here and below,
  # the same of it: vet would need more to be compiled for every instance anew.
  prepare {
    command = ["sh", "-c", "go mod init warm && printf 'package warm\nimport \"testing\"\nfunc Test(*testing.T) {}\n' > warm_test.go && go test -vet=off ."]
  }
}

instance "area" {
  source {
    dir { path = "base" }
  }
  fix {
    dir { path = "fix" }
  }
  test_files        = ["**/*_test.go"]
  problem_statement = "Rect adds."
  runtime           = runtime.go
  build {
    command = ["go", "build", "./..."]
  }
  test {
    command      = ["go", "test", "-json", "-count=1", "-vet=off", "./..."]
    format       = "gotest"
    fail_to_pass = ["TestRect"]
    pass_to_pass = ["TestSquare"]
  }
}

# The hidden test must fail on base and pass after the gold patch.
gate "all" {
  instances = instance.area
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
