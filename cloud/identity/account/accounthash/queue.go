package accounthash

import (
	"context"
	"slices"
	"sync"
	"time"

	"kennel/cloud/identity/account"
	"kennel/infra/errs"
)

// queue lets Parallel callers work and MaxWaiting wait.
type queue struct {
	mu      sync.Mutex
	running int
	waiting []*waiter       // in the order in which they came
	turns   []account.Share // those that had a turn while others waited, the latest last
}

type waiter struct {
	by   account.Share
	turn chan bool // 1: true for its turn, false if it lost its place
}

func busy() error {
	return &errs.Error{Kind: errs.Exhausted, Code: "busy", Msg: "too many sign-ins at once", Retry: 2 * time.Second}
}

// enter waits for a turn, which leave ends. Exhausted "busy" if there is no place in the queue, or another has more right to it.
func (q *queue) enter(ctx context.Context, by account.Share) error {
	q.mu.Lock()
	if q.running < Parallel {
		q.running++
		q.mu.Unlock()
		return nil
	}
	if len(q.waiting) >= MaxWaiting && !q.room(by) {
		q.mu.Unlock()
		return busy()
	}
	w := &waiter{by, make(chan bool, 1)}
	q.waiting = append(q.waiting, w)
	q.mu.Unlock()
	select {
	case mine := <-w.turn:
		if !mine {
			return busy()
		}
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 && <-w.turn { // the turn came at the same moment
		q.leave()
	}
	return ctx.Err()
}

// room drops the last of the address with the most waiting, if that has more than the newcomer would have; known places lose theirs to known places
// alone. q.mu is held.
func (q *queue) room(by account.Share) bool {
	n, most := map[account.Share]int{}, account.Share{Known: true}
	for _, w := range q.waiting {
		n[w.by]++
	}
	for s := range n {
		if most.Known != s.Known && most.Known || most.Known == s.Known && n[s] > n[most] {
			most = s
		}
	}
	if !(by.Known && !most.Known) && (most.Known && !by.Known || n[most] <= n[by]+1) {
		return false
	}
	for i, w := range slices.Backward(q.waiting) {
		if w.by == most {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			w.turn <- false
			return true
		}
	}
	return false
}

// leave ends a turn and gives it to the next: known places first, then who had none for longest.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running, q.turns = q.running-1, nil
		return
	}
	next, best := 0, len(q.turns)
	for i, w := range q.waiting {
		if known := q.waiting[next].by.Known; w.by.Known != known {
			if known {
				continue
			}
			next, best = i, slices.Index(q.turns, w.by)
			continue
		}
		if at := slices.Index(q.turns, w.by); i == 0 || at < best {
			next, best = i, at
		}
	}
	w := q.waiting[next]
	q.waiting = slices.Delete(q.waiting, next, next+1)
	if best >= 0 {
		q.turns = slices.Delete(q.turns, best, best+1)
	}
	q.turns = append(q.turns, w.by)
	if len(q.turns) > MaxWaiting {
		q.turns = q.turns[1:]
	}
	w.turn <- true
}
