// Package observer lets a service of one process say that something happened without knowing who needs to hear it.
package observer

import (
	"context"
	"errors"
)

// Of is a notice about a T. The zero value has no hearer.
type Of[T any] struct {
	hearers []func(context.Context, T) error
}

// Hear adds a hearer. Hearers are added while the process is wired; it is not safe together with Tell.
func (n *Of[T]) Hear(f func(context.Context, T) error) { n.hearers = append(n.hearers, f) }

// Tell calls every hearer, one after the other, and returns their errors joined. A teller that repeats after an error reaches all of them again.
func (n *Of[T]) Tell(ctx context.Context, t T) error {
	var all error
	for _, f := range n.hearers {
		all = errors.Join(all, f(ctx, t))
	}
	return all
}
