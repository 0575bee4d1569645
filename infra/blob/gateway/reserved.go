package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api/middlewares"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// reserved is the library's own folder: it keeps unfinished uploads in a bucket's first one, and lists no folder of this name at any depth.
const reserved = posix.MetaTmpDir

// shown is the new name of a folder that an earlier version stored under the reserved one, so that its objects are listed and backed up.
const shown = "%2Esgwtmp"

// refusing refuses keys that could be written and never be found again.
type refusing struct{ backend.Backend }

func check(key *string) error {
	if key == nil || !slices.Contains(strings.Split(*key, "/"), reserved) {
		return nil
	}
	return s3err.APIError{Code: "InvalidArgument", HTTPStatusCode: http.StatusBadRequest,
		Description: fmt.Sprintf("The key %.200q has a part called %s, which this gateway keeps for itself; write it as %s.", *key, reserved, shown)}
}

func (r refusing) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	if err := check(in.Key); err != nil {
		return s3response.PutObjectOutput{}, err
	}
	in.Body = whole(in.Body, in.ContentLength)
	return r.Backend.PutObject(ctx, in)
}

func (r refusing) UploadPart(ctx context.Context, in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	in.Body = whole(in.Body, in.ContentLength)
	return r.Backend.UploadPart(ctx, in)
}

// whole returns a body that ends with an error if its sender is gone before all of it came. The library takes the end of the connection for the end of
// the body, and would store what has come. Bodies in chunks say themselves where they end.
func whole(body io.Reader, length *int64) io.Reader {
	if _, chunks := body.(middlewares.ChecksumReader); chunks || body == nil || length == nil {
		return body
	}
	return &wholeBody{body, *length}
}

type wholeBody struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (w *wholeBody) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if w.left -= int64(n); errors.Is(err, io.EOF) && w.left > 0 {
		err = s3err.GetAPIError(s3err.ErrIncompleteBody)
	}
	return n, err
}

func (r refusing) CreateMultipartUpload(ctx context.Context, in s3response.CreateMultipartUploadInput) (s3response.InitiateMultipartUploadResult, error) {
	if err := check(in.Key); err != nil {
		return s3response.InitiateMultipartUploadResult{}, err
	}
	return r.Backend.CreateMultipartUpload(ctx, in)
}

func (r refusing) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	if err := check(in.Key); err != nil {
		return s3response.CopyObjectOutput{}, err
	}
	return r.Backend.CopyObject(ctx, in)
}

// showHidden renames folders that an earlier version let robots write under the reserved name, objects and attributes alike. The library's own folder,
// which is a bucket's first, stays.
func showHidden(roots ...string) error {
	for _, root := range roots {
		var found []string
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || d.Name() != reserved {
				return err
			}
			if strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) < 3 {
				return fs.SkipDir // /BUCKET/.sgwtmp
			}
			found = append(found, path)
			return nil
		})
		if err != nil {
			return err
		}
		for _, path := range slices.Backward(found) { // what lies deeper first
			if err := os.Rename(path, filepath.Join(filepath.Dir(path), shown)); err != nil {
				return err
			}
		}
	}
	return nil
}
