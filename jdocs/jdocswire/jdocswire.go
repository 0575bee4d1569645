// Package jdocswire is documents over request and reply (kennel/<thing>/req/jdocs/<method>): the bodies both ends write, in the
// published field names, and the robot's client. No server code is here, so that it stays small on a robot.
//
//	write    {thing, doc_name, doc{doc_version, fmt_version, client_metadata, json_doc}} -> {status, latest_doc_version}
//	read     {thing, items[{doc_name, my_doc_version}]}                               -> {items[{status, doc}]}
//	delete   {thing, doc_name}                                                        -> {status, latest_version, latest_doc_version}
//	revision {thing, doc_name, doc_version}                                           -> {found, by_you, doc}
//
// The book and the published interface disagree on some names; input takes both: client_meta and client_metadata, account and user_id
// (VEC-JDS-01, 02). Numbers of 64 bits may be written as text, as the published REST form does. revision is our own: with it a robot
// that lost an answer finds out whether its write was stored.
package jdocswire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"kennel/infra/errs"
	"kennel/jdocs"
)

// Service and methods, as in the topic.
const (
	Service  = "jdocs"
	Write    = "write"
	Read     = "read"
	Delete   = "delete"
	Revision = "revision"
)

// Uint is a 64-bit number, read from a JSON number or its text.
type Uint uint64

// UnmarshalJSON reads 7 or "7".
func (u *Uint) UnmarshalJSON(b []byte) error {
	s := string(b)
	if len(s) > 1 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40s: want a whole number from 0 to 2^64-1", b)
	}
	*u = Uint(n)
	return nil
}

// Doc is a document on the wire.
type Doc struct {
	DocVersion     Uint   `json:"doc_version"`
	FmtVersion     Uint   `json:"fmt_version"`
	ClientMetadata string `json:"client_metadata"`
	ClientMeta     string `json:"client_meta,omitempty"` // the book's name; read, never written
	JSONDoc        string `json:"json_doc"`
}

// DocOf returns d in its wire form.
func DocOf(d jdocs.Doc) Doc {
	return Doc{DocVersion: Uint(d.Version), FmtVersion: Uint(d.FmtVersion), ClientMetadata: d.ClientMeta, JSONDoc: d.JSON}
}

// Doc returns the document.
func (d Doc) Doc() jdocs.Doc {
	meta := d.ClientMetadata
	if meta == "" {
		meta = d.ClientMeta
	}
	return jdocs.Doc{Version: uint64(d.DocVersion), FmtVersion: uint64(d.FmtVersion), ClientMeta: meta, JSON: d.JSONDoc}
}

// A Who names the sender in a request; it is optional. The transport proves the thing, and Who must not contradict it.
type Who struct {
	Account string `json:"account,omitempty"`
	UserID  string `json:"user_id,omitempty"`
	Thing   string `json:"thing,omitempty"`
}

// WriteReq asks to create (version 0) or replace a document.
type WriteReq struct {
	Who
	DocName string `json:"doc_name"`
	Doc     Doc    `json:"doc"`
}

// WriteResp answers a WriteReq.
type WriteResp struct {
	Status           string `json:"status"`
	LatestDocVersion Uint   `json:"latest_doc_version"`
}

// ReadReq asks for documents.
type ReadReq struct {
	Who
	Items []ReadItem `json:"items"`
}

// ReadItem names one document and the version the reader has.
type ReadItem struct {
	DocName      string `json:"doc_name"`
	MyDocVersion Uint   `json:"my_doc_version"`
}

// ReadResp answers a ReadReq, item by item.
type ReadResp struct {
	Items []ReadRespItem `json:"items"`
}

// ReadRespItem always has a doc, also when there is none (peer facts, section 1).
type ReadRespItem struct {
	Status string `json:"status"`
	Doc    Doc    `json:"doc"`
}

// DeleteReq asks to remove a document.
type DeleteReq struct {
	Who
	DocName string `json:"doc_name"`
}

// DeleteResp answers a DeleteReq. Both names of the version are written (VEC-JDS-04).
type DeleteResp struct {
	Status           string `json:"status"`
	LatestVersion    Uint   `json:"latest_version"`
	LatestDocVersion Uint   `json:"latest_doc_version"`
}

// RevisionReq asks for one accepted version.
type RevisionReq struct {
	Who
	DocName    string `json:"doc_name"`
	DocVersion Uint   `json:"doc_version"`
}

// RevisionResp answers a RevisionReq. ByYou: the asking thing wrote it.
type RevisionResp struct {
	Found bool `json:"found"`
	ByYou bool `json:"by_you"`
	Doc   Doc  `json:"doc"`
}

// Decode reads the body of a request or an answer; kind Invalid. Unknown fields are left for newer peers. A body that is not UTF-8 is
// refused, since the decoder would replace bytes of a document.
func Decode[T any](b []byte) (T, error) {
	var v T
	if !utf8.Valid(b) {
		return v, errs.New(errs.Invalid, "body is not UTF-8 text")
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, errs.New(errs.Invalid, "body: %v", err)
	}
	return v, nil
}
