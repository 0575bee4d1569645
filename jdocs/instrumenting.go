package jdocs

import (
	"context"
	"encoding/json"
	"time"

	"kennel/infra/thing"
)

// Observe records one call: the method, the outcome ("ok", "error" or a write's status) and how long it took.
type Observe func(method, outcome string, took time.Duration)

// Instrumented returns svc with every call measured.
func Instrumented(svc Service, observe Observe) Service { return instrumented{svc, observe} }

type instrumented struct {
	next    Service
	observe Observe
}

func (i instrumented) done(method string, start time.Time, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	i.observe(method, outcome, time.Since(start))
}

func (i instrumented) Write(ctx context.Context, key Key, d Doc, by string) (WriteResult, error) {
	start := time.Now()
	res, err := i.next.Write(ctx, key, d, by)
	if err != nil {
		i.done("write", start, err)
	} else {
		i.observe("write", res.Status.String(), time.Since(start))
	}
	return res, err
}

func (i instrumented) Read(ctx context.Context, account string, id thing.ID, items []Item) (res []ReadResult, err error) {
	defer func(start time.Time) { i.done("read", start, err) }(time.Now())
	return i.next.Read(ctx, account, id, items)
}

func (i instrumented) Delete(ctx context.Context, key Key, by string) (v uint64, err error) {
	defer func(start time.Time) { i.done("delete", start, err) }(time.Now())
	return i.next.Delete(ctx, key, by)
}

func (i instrumented) Set(ctx context.Context, key Key, fields map[string]json.RawMessage, by string) (rev Revision, err error) {
	defer func(start time.Time) { i.done("set", start, err) }(time.Now())
	return i.next.Set(ctx, key, fields, by)
}

func (i instrumented) Restore(ctx context.Context, key Key, old Doc, by string) (rev Revision, err error) {
	defer func(start time.Time) { i.done("restore", start, err) }(time.Now())
	return i.next.Restore(ctx, key, old, by)
}

func (i instrumented) Get(ctx context.Context, key Key) (rev Revision, err error) {
	defer func(start time.Time) { i.done("get", start, err) }(time.Now())
	return i.next.Get(ctx, key)
}

func (i instrumented) Revision(ctx context.Context, key Key, version uint64) (rev Revision, err error) {
	defer func(start time.Time) { i.done("revision", start, err) }(time.Now())
	return i.next.Revision(ctx, key, version)
}

func (i instrumented) History(ctx context.Context, key Key, limit int) (revs []Revision, err error) {
	defer func(start time.Time) { i.done("history", start, err) }(time.Now())
	return i.next.History(ctx, key, limit)
}

func (i instrumented) List(ctx context.Context, id thing.ID) (ls []Listing, err error) {
	defer func(start time.Time) { i.done("list", start, err) }(time.Now())
	return i.next.List(ctx, id)
}
