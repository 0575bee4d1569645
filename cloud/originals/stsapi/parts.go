package stsapi

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kennel/cloud/identity/sts"
	"kennel/infra/blob"
	"kennel/infra/errs"
)

// maxParts is how many parts an object may have, at S3; maxList bounds the list of them, in bytes.
const (
	maxParts = 10000
	maxList  = 2 << 20
)

const xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"

type beginXML struct {
	XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
	Xmlns    string   `xml:"xmlns,attr"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

func (c *call) begin(ctx context.Context, _ url.Values) error {
	if c.body.Size != 0 {
		return malformedXML("want no body")
	}
	bucket, _, err := c.target(c.r)
	if err != nil {
		return err
	}
	id, err := c.cfg.Store.BeginParts(ctx, c.store, c.options())
	if err != nil {
		return err
	}
	return writeXML(c.w, http.StatusOK, beginXML{Xmlns: xmlns, Bucket: bucket, Key: c.key, UploadID: id})
}

func (c *call) putPart(ctx context.Context, q url.Values) error {
	number, err := strconv.ParseInt(q.Get("partNumber"), 10, 32)
	if err != nil || number < 1 || number > maxParts {
		return errs.Coded(errs.Invalid, "InvalidArgument", "part number: want 1 to %d", maxParts)
	}
	err = c.take(ctx, func(body io.Reader, size int64, d blob.Digests) (string, error) {
		return c.cfg.Store.PutPart(ctx, c.store, q.Get("uploadId"), int32(number), body, size, d)
	})
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

type listXML struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Parts   []struct {
		PartNumber int32
		ETag       string
	} `xml:"Part"`
}

type finishXML struct {
	XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
	Xmlns   string   `xml:"xmlns,attr"`
	Bucket  string
	Key     string
	ETag    string
}

func malformedXML(why string) error { return errs.Coded(errs.Invalid, "MalformedXML", "%s", why) }

// parseList reads which parts make the object: in order, each once.
func parseList(b []byte) ([]blob.Part, error) {
	var list listXML
	if err := xml.Unmarshal(b, &list); err != nil {
		return nil, malformedXML("the list of parts is not well formed")
	}
	if len(list.Parts) == 0 || len(list.Parts) > maxParts {
		return nil, malformedXML("want 1 to 10000 parts")
	}
	var parts []blob.Part
	last := int32(0)
	for _, p := range list.Parts {
		if p.PartNumber <= last || p.PartNumber > maxParts {
			return nil, errs.Coded(errs.Invalid, "InvalidPartOrder", "the parts are not in order")
		}
		last = p.PartNumber
		parts = append(parts, blob.Part{Number: p.PartNumber, ETag: strings.Trim(strings.TrimSpace(p.ETag), `"`)})
	}
	return parts, nil
}

func (c *call) finish(ctx context.Context, q url.Values) error {
	if c.body.Size > maxList {
		return malformedXML("the list of parts is too long")
	}
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	in := c.intake(ctx)
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	parts, err := parseList(b)
	if err != nil {
		return err
	}
	upload := q.Get("uploadId")
	came, err := c.cfg.Store.Parts(ctx, c.store, upload)
	if err != nil {
		return err
	}
	sizes := map[int32]blob.Part{}
	for _, p := range came {
		sizes[p.Number] = p
	}
	total := int64(0)
	for i, p := range parts {
		have, ok := sizes[p.Number]
		switch {
		case !ok || have.ETag != p.ETag:
			return errs.Coded(errs.Invalid, "InvalidPart", "part %d was not uploaded, or has another ETag", p.Number)
		case have.Size < minPart && i < len(parts)-1:
			return errs.Coded(errs.Invalid, "EntityTooSmall", "part %d has %d bytes, want at least %d in all but the last part", p.Number, have.Size, minPart)
		}
		total += have.Size
	}
	if total > c.cfg.MaxObject {
		return errs.Coded(errs.Invalid, "EntityTooLarge", "the upload has %d bytes, want at most %d", total, c.cfg.MaxObject)
	}
	bucket, _, err := c.target(c.r)
	if err != nil {
		return err
	}
	etag, err := c.cfg.Store.FinishParts(ctx, c.store, upload, parts)
	if err != nil {
		return err
	}
	c.stored(ctx, total)
	return writeXML(c.w, http.StatusOK, finishXML{Xmlns: xmlns, Bucket: bucket, Key: c.key, ETag: strconv.Quote(etag)})
}

// minPart is the least size of parts but the last, at S3.
const minPart = 5 << 20

func (c *call) drop(ctx context.Context, q url.Values) error {
	if err := c.cfg.Store.DropParts(ctx, c.store, q.Get("uploadId")); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// Sweep drops uploads in parts that were not finished within a day, and returns how many. Any process may run it, at any time.
func (d *Door) Sweep(ctx context.Context) (int, error) {
	return d.cfg.Store.DropUnfinished(ctx, sts.Root, d.cfg.Now().Add(-unfinished))
}
