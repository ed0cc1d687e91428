// Package store keeps what the engine remembers: journal, blobs, snapshot, stat cache, lock.
package store
