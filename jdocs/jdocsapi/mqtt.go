package jdocsapi

import (
	"context"
	"errors"
	"slices"

	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Handlers answers the robots' requests by "<service>/<method>". A thing reaches only its own documents: the id that the broker proved
// decides, and a body that names another thing is refused (VEC-FLE-01). With WithOwnerOf it also reads and writes the settings and
// entitlements of its owner, as the cloud knows the owner: an account named in the body proves nothing. The version rule answers a
// repeated write, which changes nothing.
func Handlers(svc jdocs.Service, opts ...Option) map[string]kitmqtt.ReqHandler {
	o := build(opts)
	return map[string]kitmqtt.ReqHandler{
		jdocswire.Service + "/" + jdocswire.Read:     kitmqtt.Handler(jdocswire.Decode[jdocswire.ReadReq], readDocs(svc, o)),
		jdocswire.Service + "/" + jdocswire.Write:    kitmqtt.Handler(jdocswire.Decode[jdocswire.WriteReq], writeDoc(svc, o)),
		jdocswire.Service + "/" + jdocswire.Delete:   kitmqtt.Handler(jdocswire.Decode[jdocswire.DeleteReq], deleteDoc(svc, o)),
		jdocswire.Service + "/" + jdocswire.Revision: kitmqtt.Handler(jdocswire.Decode[jdocswire.RevisionReq], revision(svc, o)),
	}
}

func readDocs(svc jdocs.Service, o options) func(context.Context, thing.ID, jdocswire.ReadReq) (jdocswire.ReadResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.ReadReq) (jdocswire.ReadResp, error) {
		if err := req.Check(id); err != nil {
			return jdocswire.ReadResp{}, err
		}
		if len(req.Items) > jdocs.MaxItems {
			return jdocswire.ReadResp{}, errs.New(errs.Invalid, "read of %d documents: at most %d in one request", len(req.Items), jdocs.MaxItems)
		}
		account := ""
		if o.ownerOf != nil && slices.ContainsFunc(req.Items, func(it jdocswire.ReadItem) bool { return jdocs.Name(it.DocName).OfAccount() }) {
			var err error
			if account, err = o.accountOf(ctx, id, req.Who); err != nil {
				return jdocswire.ReadResp{}, err
			}
		}
		resp := jdocswire.ReadResp{Items: make([]jdocswire.ReadRespItem, len(req.Items))}
		var items []jdocs.Item
		var at []int
		for i, it := range req.Items {
			resp.Items[i] = jdocswire.ReadRespItem{Status: jdocs.NotFound.String()}
			if name := jdocs.Name(it.DocName); account != "" || o.ownerOf == nil || !name.OfAccount() { // without an owner it has no account's documents
				items, at = append(items, jdocs.Item{Name: name, MyVersion: uint64(it.MyDocVersion)}), append(at, i)
			}
		}
		res, err := svc.Read(ctx, account, id, items)
		for i, r := range res {
			resp.Items[at[i]] = jdocswire.ReadRespItem{Status: r.Status.String(), Doc: jdocswire.DocOf(r.Doc)}
		}
		return resp, err
	}
}

func writeDoc(svc jdocs.Service, o options) func(context.Context, thing.ID, jdocswire.WriteReq) (jdocswire.WriteResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.WriteReq) (jdocswire.WriteResp, error) {
		key, err := o.robotKey(ctx, id, req.Who, jdocs.Name(req.DocName))
		if err != nil {
			return jdocswire.WriteResp{}, err
		}
		res, err := svc.Write(ctx, key, req.Doc.Doc(), string(id))
		if err == nil && res.Status == jdocs.Accepted && key.Account != "" {
			o.accountChanged(ctx, key.Account, key.Name)
		}
		return jdocswire.WriteResp{Status: res.Status.String(), LatestDocVersion: jdocswire.Uint(res.Latest)}, err
	}
}

func deleteDoc(svc jdocs.Service, o options) func(context.Context, thing.ID, jdocswire.DeleteReq) (jdocswire.DeleteResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.DeleteReq) (jdocswire.DeleteResp, error) {
		key, err := o.robotKey(ctx, id, req.Who, jdocs.Name(req.DocName))
		if err != nil {
			return jdocswire.DeleteResp{}, err
		}
		if key.Account != "" {
			return jdocswire.DeleteResp{}, errs.Coded(errs.Denied, "account_document", "document %s is the owner's: %s may not delete it", key.Name, id)
		}
		v, err := svc.Delete(ctx, key, string(id))
		return jdocswire.DeleteResp{Status: jdocs.Accepted.String(), LatestVersion: jdocswire.Uint(v), LatestDocVersion: jdocswire.Uint(v)}, err
	}
}

func revision(svc jdocs.Service, o options) func(context.Context, thing.ID, jdocswire.RevisionReq) (jdocswire.RevisionResp, error) {
	return func(ctx context.Context, id thing.ID, req jdocswire.RevisionReq) (jdocswire.RevisionResp, error) {
		key, err := o.robotKey(ctx, id, req.Who, jdocs.Name(req.DocName))
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
