package task

import (
	"io"

	"pbuild/engine/digest"
)

// Blobs is the content store as executors see it. Put may buffer: what it returned is durable once the engine has
// recorded a task that names it.
type Blobs interface {
	Put(b []byte) (digest.Digest, error)
	PutFrom(r io.Reader) (digest.Digest, int64, error)
	Get(d digest.Digest) ([]byte, error)
	Open(d digest.Digest) (io.ReadCloser, error)
}
