package jdocsapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/go-kit/kit/endpoint"

	"kennel/infra/kit/kitmqtt"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocswire"
)

// Handlers answers the robots' requests by "<service>/<method>". The broker has proved which robot asks.
func Handlers(r jdocs.Robots, log *slog.Logger) map[string]kitmqtt.ReqHandler {
	e := makeEndpoints(r, log)
	return map[string]kitmqtt.ReqHandler{
		jdocswire.Service + "/" + jdocswire.Read: handler(e.read, func(id thing.ID, req jdocswire.ReadReq) any {
			items := make([]jdocs.Item, len(req.Items))
			for i, it := range req.Items {
				items[i] = jdocs.Item{Name: jdocs.Name(it.DocName), MyVersion: uint64(it.MyDocVersion)}
			}
			return readReq{askerOf(id, req.Who), items}
		}, func(res []jdocs.ReadResult) (resp jdocswire.ReadResp) {
			resp.Items = make([]jdocswire.ReadRespItem, len(res))
			for i, one := range res {
				resp.Items[i] = jdocswire.ReadRespItem{Status: one.Status.String(), Doc: jdocswire.DocOf(one.Doc)}
			}
			return resp
		}),
		jdocswire.Service + "/" + jdocswire.Write: handler(e.write, func(id thing.ID, req jdocswire.WriteReq) any {
			return writeReq{askerOf(id, req.Who), jdocs.Name(req.DocName), req.Doc.Doc()}
		}, func(res jdocs.WriteResult) jdocswire.WriteResp {
			return jdocswire.WriteResp{Status: res.Status.String(), LatestDocVersion: jdocswire.Uint(res.Latest)}
		}),
		jdocswire.Service + "/" + jdocswire.Delete: handler(e.delete, func(id thing.ID, req jdocswire.DeleteReq) any {
			return nameReq{by: askerOf(id, req.Who), name: jdocs.Name(req.DocName)}
		}, func(v uint64) jdocswire.DeleteResp {
			return jdocswire.DeleteResp{Status: jdocs.Accepted.String(), LatestVersion: jdocswire.Uint(v), LatestDocVersion: jdocswire.Uint(v)}
		}),
		jdocswire.Service + "/" + jdocswire.Revision: kitmqtt.Handler(jdocswire.Decode[jdocswire.RevisionReq],
			func(ctx context.Context, id thing.ID, req jdocswire.RevisionReq) (resp jdocswire.RevisionResp, err error) {
				out, err := e.revision(ctx, nameReq{askerOf(id, req.Who), jdocs.Name(req.DocName), uint64(req.DocVersion)})
				if errors.Is(err, jdocs.ErrNotFound) {
					return resp, nil
				}
				if rev, ok := out.(jdocs.Revision); ok && err == nil {
					resp = jdocswire.RevisionResp{Found: true, ByYou: rev.By == string(id), Doc: jdocswire.DocOf(rev.Doc)}
				}
				return resp, err
			}),
	}
}

// handler serves one endpoint: in makes the request of it out of the body, out the body of the answer.
func handler[Body, Res, Answer any](ep endpoint.Endpoint, in func(thing.ID, Body) any, out func(Res) Answer) kitmqtt.ReqHandler {
	return kitmqtt.Handler(jdocswire.Decode[Body], func(ctx context.Context, id thing.ID, b Body) (answer Answer, err error) {
		resp, err := ep(ctx, in(id, b))
		if res, ok := resp.(Res); ok && err == nil {
			answer = out(res)
		}
		return answer, err
	})
}

func askerOf(id thing.ID, who jdocswire.Who) jdocs.Asker {
	return jdocs.Asker{Thing: id, Said: jdocs.Said{Thing: who.Thing, Account: cmp.Or(who.Account, who.UserID)}}
}
