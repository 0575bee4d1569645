package sts

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"kennel/infra/blob"
	"kennel/infra/thing"
)

// Names of uploads in our bucket. S3 has no folders, so a robot may upload both "a.gz" and "a.gz/b", or "x/.sgwtmp/y". A gateway that keeps objects
// as files (s3d) can store neither pair: the first needs one name for a file and a folder, and the second ends in a folder of its own that it
// neither lists nor backs up. It also cannot store a part of more than 255 bytes. So each name becomes one part of a key: what could make a folder
// or a name of the gateway's own is written as %XX, and a name that gets too long is replaced by its digest and kept in the object's metadata.
// Ordinary names, such as 2026-11-21-14-00-00-log.gz, are stored as they are. Objects stored before names were encoded keep their keys and stay
// readable: a list gives the key to read an object by, and DecodeName leaves what it cannot undo.

// maxName is the longest encoded name in bytes. s3d adds up to 28 bytes to it while it writes, within the 255 of a file's name.
const maxName = 200

// longName begins the name of an object whose own name would be too long; an encoded name never begins with it.
const longName = "~"

// NameMetadata is the metadata of an object whose name is not in its key: the name in base64.
const NameMetadata = "name"

// EncodeName returns the last part of the key under which an upload called name is stored. It has no slash, does not begin with a dot, and no two
// names have the same.
func EncodeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c < ' ' || c == 0x7f || strings.IndexByte(`/\%`, c) >= 0 || i == 0 && (c == '.' || c == '~') {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
			continue
		}
		b.WriteByte(c)
	}
	if b.Len() <= maxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return longName + hex.EncodeToString(sum[:])
}

// DecodeName undoes EncodeName. It returns false for a name that is only in the object's metadata. What EncodeName cannot have written is from before
// it and is returned as it is.
func DecodeName(stored string) (name string, ok bool) {
	if sum, long := strings.CutPrefix(stored, longName); long && len(sum) == hex.EncodedLen(sha256.Size) {
		return "", false
	}
	name, err := url.PathUnescape(stored)
	if err != nil || EncodeName(name) != stored {
		return stored, true
	}
	return name, true
}

// Metadata returns what is stored beside an upload called name.
func (g Grant) Metadata(name string) map[string]string {
	m := map[string]string{"thing": string(g.Thing)}
	if strings.HasPrefix(EncodeName(name), longName) {
		m[NameMetadata] = base64.StdEncoding.EncodeToString([]byte(name))
	}
	return m
}

// NameOf returns what the robot called the object that was stored, from its key and, where it is there, its metadata.
func NameOf(o blob.Info) string {
	if b, err := base64.StdEncoding.DecodeString(o.Metadata[NameMetadata]); err == nil && len(b) > 0 {
		return string(b)
	}
	name, ok := DecodeName(o.Key[strings.LastIndexByte(o.Key, '/')+1:])
	if !ok {
		return o.Key
	}
	return name
}

// ParseStored reads a key of our bucket that a robot with this prefix was given: which robot uploaded it, for whom, and what it is called, which is ""
// if only the object's metadata says so.
func ParseStored(prefix, key string) (id thing.ID, user, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, stored(prefix)+"/")
	parts := strings.SplitN(rest, "/", 3)
	if !ok || len(parts) != 3 || parts[2] == "" || !users.MatchString(parts[0]) {
		return "", "", "", false
	}
	b, err := base64.StdEncoding.Strict().DecodeString(parts[1])
	if err != nil {
		return "", "", "", false
	}
	if id, err = thing.Parse(string(b)); err != nil {
		return "", "", "", false
	}
	name, _ = DecodeName(parts[2])
	return id, parts[0], name, true
}
