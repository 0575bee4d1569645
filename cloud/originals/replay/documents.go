package replay

import (
	"context"
	"fmt"

	"kennel/infra/api/jdocspb"
)

// jdocs makes one request over a connection of its own, without a client certificate.
func (r *Robot) jdocs(ctx context.Context, do func(jdocspb.JdocsClient) error) error {
	conn, err := r.connect(r.Servers.Jdocs, r.access())
	if err != nil {
		return err
	}
	defer conn.Close()
	return r.heard(ctx, do(jdocspb.NewJdocsClient(conn)))
}

// Read asks for documents, each with the version that the robot has (0: send it whatever its version), and returns as many items.
func (r *Robot) Read(ctx context.Context, items ...*jdocspb.ReadDocsReq_Item) (out []*jdocspb.ReadDocsResp_Item, err error) {
	return out, r.jdocs(ctx, func(c jdocspb.JdocsClient) error {
		resp, err := c.ReadDocs(ctx, &jdocspb.ReadDocsReq{UserId: r.User(), Thing: r.Thing, Items: items})
		if err != nil {
			return err
		}
		if len(resp.Items) != len(items) {
			return Fatal{fmt.Sprintf("%d items for %d documents", len(resp.Items), len(items))}
		}
		for i, item := range resp.Items {
			if item.Doc == nil {
				return Fatal{fmt.Sprintf("item %s is %v and has no doc", items[i].DocName, item.Status)}
			}
		}
		out = resp.Items
		return nil
	})
}

// Write creates a document (version 0 in doc) or replaces the version that doc names.
func (r *Robot) Write(ctx context.Context, name string, doc *jdocspb.Jdoc) (out *jdocspb.WriteDocResp, err error) {
	return out, r.WriteFor(ctx, r.Thing, name, doc, &out)
}

// WriteFor is Write for a thing that need not be the robot.
func (r *Robot) WriteFor(ctx context.Context, thing, name string, doc *jdocspb.Jdoc, out **jdocspb.WriteDocResp) error {
	return r.jdocs(ctx, func(c jdocspb.JdocsClient) (err error) {
		*out, err = c.WriteDoc(ctx, &jdocspb.WriteDocReq{UserId: r.User(), Thing: thing, DocName: name, Doc: doc})
		return err
	})
}

// Delete deletes a document; that there is none is no error.
func (r *Robot) Delete(ctx context.Context, name string) error {
	return r.jdocs(ctx, func(c jdocspb.JdocsClient) error {
		_, err := c.DeleteDoc(ctx, &jdocspb.DeleteDocReq{UserId: r.User(), Thing: r.Thing, DocName: name})
		return err
	})
}
