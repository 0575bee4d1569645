package jdocsapi

import (
	"context"
	"encoding/json"
	"errors"

	"kennel/certs/thing"
	"kennel/infra/kit/kitmqtt"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Handlers answers the robots' requests by "<service>/<method>". A thing reaches only its own documents: the id that the broker proved
// decides, and a body that names another thing is refused (VEC-FLE-01). A repeated write is answered by the version rule: it changes
// nothing twice.
func Handlers(svc jdocs.Service) map[string]kitmqtt.ReqHandler {
	return map[string]kitmqtt.ReqHandler{
		jdocswire.Service + "/" + jdocswire.Read:     handler(readDocs(svc)),
		jdocswire.Service + "/" + jdocswire.Write:    handler(writeDoc(svc)),
		jdocswire.Service + "/" + jdocswire.Delete:   handler(deleteDoc(svc)),
		jdocswire.Service + "/" + jdocswire.Revision: handler(revision(svc)),
	}
}

// handler puts decoding and encoding around fn.
func handler[Req, Resp any](fn func(context.Context, thing.ID, Req) (Resp, error)) kitmqtt.ReqHandler {
	return func(ctx context.Context, id thing.ID, body []byte) ([]byte, error) {
		req, err := jdocswire.Decode[Req](body)
		if err != nil {
			return nil, err
		}
		resp, err := fn(ctx, id, req)
		if err != nil {
			return nil, err
		}
		return json.Marshal(resp)
	}
}

// keyFor returns the key of a thing's own document. What the body says of an account is not proof of one, so a thing reaches documents
// of accounts only once something proves its owner.
func keyFor(id thing.ID, who jdocswire.Who, name string) (jdocs.Key, error) {
	if err := who.Check(id); err != nil {
		return jdocs.Key{}, err
	}
	return jdocs.NewKey("", id, jdocs.Name(name))
}

func readDocs(svc jdocs.Service) func(context.Context, thing.ID, jdocswire.ReadReq) (jdocswire.ReadResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.ReadReq) (jdocswire.ReadResp, error) {
		if err := req.Check(id); err != nil {
			return jdocswire.ReadResp{}, err
		}
		items := make([]jdocs.Item, len(req.Items))
		for i, it := range req.Items {
			items[i] = jdocs.Item{Name: jdocs.Name(it.DocName), MyVersion: uint64(it.MyDocVersion)}
		}
		res, err := svc.Read(ctx, "", id, items)
		resp := jdocswire.ReadResp{Items: []jdocswire.ReadRespItem{}}
		for _, r := range res {
			resp.Items = append(resp.Items, jdocswire.ReadRespItem{Status: r.Status.String(), Doc: jdocswire.DocOf(r.Doc)})
		}
		return resp, err
	}
}

func writeDoc(svc jdocs.Service) func(context.Context, thing.ID, jdocswire.WriteReq) (jdocswire.WriteResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.WriteReq) (jdocswire.WriteResp, error) {
		key, err := keyFor(id, req.Who, req.DocName)
		if err != nil {
			return jdocswire.WriteResp{}, err
		}
		res, err := svc.Write(ctx, key, req.Doc.Doc(), string(id))
		return jdocswire.WriteResp{Status: res.Status.String(), LatestDocVersion: jdocswire.Uint(res.Latest)}, err
	}
}

func deleteDoc(svc jdocs.Service) func(context.Context, thing.ID, jdocswire.DeleteReq) (jdocswire.DeleteResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.DeleteReq) (jdocswire.DeleteResp, error) {
		key, err := keyFor(id, req.Who, req.DocName)
		if err != nil {
			return jdocswire.DeleteResp{}, err
		}
		v, err := svc.Delete(ctx, key, string(id))
		return jdocswire.DeleteResp{Status: jdocs.Accepted.String(), LatestVersion: jdocswire.Uint(v), LatestDocVersion: jdocswire.Uint(v)}, err
	}
}

func revision(svc jdocs.Service) func(context.Context, thing.ID, jdocswire.RevisionReq) (jdocswire.RevisionResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.RevisionReq) (jdocswire.RevisionResp, error) {
		key, err := keyFor(id, req.Who, req.DocName)
		if err != nil {
			return jdocswire.RevisionResp{}, err
		}
		rev, err := svc.Revision(ctx, key, uint64(req.DocVersion))
		switch {
		case errors.Is(err, jdocs.ErrNotFound) || err == nil && rev.Deleted:
			return jdocswire.RevisionResp{}, nil
		case err != nil:
			return jdocswire.RevisionResp{}, err
		}
		return jdocswire.RevisionResp{Found: true, ByYou: rev.By == string(id), Doc: jdocswire.DocOf(rev.Doc)}, nil
	}
}
