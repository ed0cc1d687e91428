package store

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A codec compresses and decompresses whole buffers, from many goroutines at once. Its machinery is made when first used.
type codec struct {
	once    sync.Once
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func (c *codec) load() {
	c.once.Do(func() {
		var err error
		if c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
			panic("pbuild bug: zstd: " + err.Error())
		}
		// A small blob is no larger than smallLimit, whatever damaged bytes claim.
		if c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderMaxMemory(smallLimit), zstd.WithDecoderConcurrency(0)); err != nil {
			panic("pbuild bug: zstd: " + err.Error())
		}
	})
}

func (c *codec) compress(dst, content []byte) []byte {
	c.load()
	return c.encoder.EncodeAll(content, dst)
}

func (c *codec) decompress(dst, packed []byte) ([]byte, error) {
	c.load()
	return c.decoder.DecodeAll(packed, dst)
}
