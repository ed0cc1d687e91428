package cli

import (
	"math"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// A plan of a graph that is larger than expected must not be collected without end, nor never.
func TestCollectLate(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	defer collectAsUsual()
	settings := func() (percent, limit uint64) {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/gomemlimit:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64(), s[1].Value.Uint64()
	}
	collectLate()
	if percent, limit := settings(); percent != math.MaxUint64 || limit != 1<<30 {
		t.Errorf("the collector begins at %d%% and %d bytes", percent, limit)
	}
	runtime.GC()
	for range 500 {
		if percent, limit := settings(); percent == 100 && limit == math.MaxInt64 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	percent, limit := settings()
	t.Errorf("after a collection it is at %d%% and %d bytes", percent, limit)
}
