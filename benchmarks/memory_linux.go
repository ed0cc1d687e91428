package main

import (
	"os"
	"syscall"
)

// mostResident is the most memory that an ended process had resident, in bytes. Linux counts it in KiB.
func mostResident(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
