package jdocswire

import (
	"context"
	"encoding/json"
	"fmt"

	"kennel/infra/errs"
	"kennel/jdocs"
)

// Requester carries one request to the cloud and its answer back (infra/kit/kitmqtt).
type Requester interface {
	Do(ctx context.Context, service, method string, body []byte) ([]byte, error)
}

// Client is a robot's view of its documents in the cloud. Errors carry the kinds of infra/errs. Safe for concurrent use if its
// Requester is.
type Client struct{ req Requester }

// NewClient returns a Client that asks through req.
func NewClient(req Requester) *Client { return &Client{req} }

// Read asks for documents; the results are in the order of items.
func (c *Client) Read(ctx context.Context, items []jdocs.Item) ([]jdocs.ReadResult, error) {
	req := ReadReq{Items: make([]ReadItem, len(items))}
	for i, it := range items {
		req.Items[i] = ReadItem{string(it.Name), Uint(it.MyVersion)}
	}
	resp, err := do[ReadResp](ctx, c.req, Read, req)
	if err != nil {
		return nil, err
	}
	if len(resp.Items) != len(items) {
		return nil, errs.New(errs.Corrupt, "read documents: %d answers to %d items", len(resp.Items), len(items))
	}
	out := make([]jdocs.ReadResult, len(items))
	for i, it := range resp.Items {
		status, err := jdocs.ParseReadStatus(it.Status)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", items[i].Name, err)
		}
		out[i] = jdocs.ReadResult{Status: status, Doc: it.Doc.Doc()}
	}
	return out, nil
}

// Write creates (version 0) or replaces a document.
func (c *Client) Write(ctx context.Context, name jdocs.Name, d jdocs.Doc) (jdocs.WriteResult, error) {
	resp, err := do[WriteResp](ctx, c.req, Write, WriteReq{DocName: string(name), Doc: DocOf(d)})
	if err != nil {
		return jdocs.WriteResult{}, err
	}
	status, err := jdocs.ParseWriteStatus(resp.Status)
	return jdocs.WriteResult{Status: status, Latest: uint64(resp.LatestDocVersion)}, err
}

// Delete removes a document and returns the version of that change; 0 if there was none.
func (c *Client) Delete(ctx context.Context, name jdocs.Name) (uint64, error) {
	resp, err := do[DeleteResp](ctx, c.req, Delete, DeleteReq{DocName: string(name)})
	return uint64(resp.LatestVersion), err
}

// Revision returns one accepted version and whether this robot wrote it; found is false if the cloud does not have it or no longer has it.
func (c *Client) Revision(ctx context.Context, name jdocs.Name, version uint64) (d jdocs.Doc, mine, found bool, err error) {
	resp, err := do[RevisionResp](ctx, c.req, Revision, RevisionReq{DocName: string(name), DocVersion: Uint(version)})
	return resp.Doc.Doc(), resp.ByYou, resp.Found, err
}

func do[Resp any](ctx context.Context, r Requester, method string, req any) (Resp, error) {
	var none Resp
	body, err := json.Marshal(req)
	if err != nil {
		return none, fmt.Errorf("%s documents: %w", method, err)
	}
	answer, err := r.Do(ctx, Service, method, body)
	if err != nil {
		return none, fmt.Errorf("%s documents: %w", method, err)
	}
	resp, err := Decode[Resp](answer)
	if err != nil {
		return none, errs.New(errs.Corrupt, "%s documents: answer: %v", method, err)
	}
	return resp, nil
}
