package host

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"pbuild/engine/run"
)

// A logger takes a command's output as it comes, replaces secrets, and keeps at most limit bytes of it: the head, and the tail where failures are.
type logger struct {
	limit   int64 // 0: none
	secrets [][]byte
	pass    func(stream string, data []byte)

	held  [3][]byte // by stream: what may be the beginning of a secret
	head  []byte    // framed
	used  int64     // bytes of output in head
	total int64     // bytes of output so far
	tail  ring
}

var streamNames = [...]string{run.Stdout: "stdout", run.Stderr: "stderr"}

const redacted = "***"

func newLogger(limit int64, secrets [][]byte, pass func(string, []byte)) *logger {
	l := &logger{limit: limit, pass: pass}
	for _, s := range secrets {
		if len(s) > 0 {
			l.secrets = append(l.secrets, s)
		}
	}
	l.tail.max = limit - limit/2
	return l
}

// write takes what one read gave.
func (l *logger) write(stream byte, data []byte) {
	if len(l.secrets) == 0 {
		l.keep(stream, data)
		return
	}
	buf := append(l.held[stream], data...)
	out, rest := redact(buf, l.secrets, false)
	l.held[stream] = slices.Clone(rest)
	l.keep(stream, out)
}

// finish flushes what was held back and returns the framed log.
func (l *logger) finish() (log []byte, truncated bool) {
	for stream := byte(run.Stdout); stream <= run.Stderr; stream++ {
		out, _ := redact(l.held[stream], l.secrets, true)
		l.keep(stream, out)
		l.held[stream] = nil
	}
	cut := l.total - l.used - l.tail.size
	if cut > 0 {
		l.head = run.AppendLog(l.head, run.Stderr, fmt.Appendf(nil, "\n[pbuild: %d bytes of output are cut out here]\n", cut))
	}
	log, err := run.JoinFrames(l.tail.appendTo(l.head))
	if err != nil {
		panic("pbuild bug: a log that was just made cannot be read: " + err.Error())
	}
	return log, cut > 0
}

func (l *logger) keep(stream byte, data []byte) {
	if len(data) == 0 {
		return
	}
	if l.pass != nil {
		l.pass(streamNames[stream], data)
	}
	l.total += int64(len(data))
	n := int64(len(data))
	if l.limit > 0 {
		n = min(n, l.limit/2-l.used)
	}
	if n > 0 {
		l.head = run.AppendLog(l.head, stream, data[:n])
		l.used += n
		data = data[n:]
	}
	if len(data) > 0 {
		l.tail.add(stream, data)
	}
}

// redact replaces every secret in buf. Unless it is the end, what could be the beginning of a secret is returned as rest: the next read may complete it.
func redact(buf []byte, secrets [][]byte, end bool) (out, rest []byte) {
	type span struct{ from, to int }
	var spans []span
	hold := len(buf)
	for _, s := range secrets {
		for at := 0; ; {
			i := bytes.Index(buf[at:], s)
			if i < 0 {
				break
			}
			spans = append(spans, span{at + i, at + i + len(s)})
			at += i + 1
		}
		for n := min(len(s)-1, len(buf)); n > 0 && !end; n-- {
			if bytes.HasSuffix(buf, s[:n]) {
				hold = min(hold, len(buf)-n)
				break
			}
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	// Secrets may overlap: what touches is one.
	merged := spans[:0]
	for _, s := range spans {
		if n := len(merged); n > 0 && s.from < merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	at := 0
	for _, s := range merged {
		// A secret that reaches into what is held back may grow with it; but a command that prints nothing else must not fill the memory.
		if s.to > hold && s.to-s.from < 1<<16 {
			hold = min(hold, s.from)
			break
		}
		out = append(append(out, buf[at:s.from]...), redacted...)
		at = s.to
	}
	hold = max(hold, at)
	return append(out, buf[at:hold]...), buf[hold:]
}

// A ring is the last max bytes of a framed log.
type ring struct {
	max, size int64
	data      []byte // from byte off on
	off       int
	frames    []frame
}

type frame struct {
	stream byte
	n      int
}

func (r *ring) add(stream byte, data []byte) {
	if int64(len(data)) > r.max {
		data = data[int64(len(data))-r.max:]
	}
	if n := len(r.frames); n > 0 && r.frames[n-1].stream == stream {
		r.frames[n-1].n += len(data)
	} else {
		r.frames = append(r.frames, frame{stream, len(data)})
	}
	r.data = append(r.data, data...)
	r.size += int64(len(data))
	drop := 0
	for over := r.size - r.max; over > 0; {
		n := min(int64(r.frames[drop].n), over)
		r.frames[drop].n -= int(n)
		r.off += int(n)
		r.size -= n
		over -= n
		if r.frames[drop].n == 0 {
			drop++
		}
	}
	r.frames = r.frames[drop:]
	// What was dropped is given back when it is as much as what is kept, so each byte is moved about once.
	if int64(r.off) > r.size+1<<16 {
		r.data = append(r.data[:0], r.data[r.off:]...)
		r.off = 0
		r.frames = slices.Clone(r.frames)
	}
}

func (r *ring) appendTo(log []byte) []byte {
	at := r.off
	for _, f := range r.frames {
		log = run.AppendLog(log, f.stream, r.data[at:at+f.n])
		at += f.n
	}
	return log
}
