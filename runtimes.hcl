# This machine's own Go. What the probe prints is the runtime's identity, and so part of every key.
runtime "go" {
  host {}
  probe = ["go", "env", "GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED"]
  env = {
    GOFLAGS     = "-mod=mod"
    GOTOOLCHAIN = "local"
    GOWORK      = "off"
  }
  # The standard library, compiled once for all instances.
  prepare {
    command = ["go", "build", "std"]
    timeout = "15m"
  }
}
