package jdocsapi

import (
	"context"
	"crypto/x509"
	"log/slog"
	"strings"

	"github.com/go-kit/kit/endpoint"
	"google.golang.org/grpc"

	"kennel/infra/api/jdocspb"
	"kennel/infra/kit"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// Metadata that original robots send, and headers of the REST form.
const (
	appKey      = "anki-app-key"
	accessToken = "anki-access-token"
)

// Credentials are what a caller of the published service brings. Nothing of it is checked.
type Credentials struct {
	AccessToken, AppKey logging.Secret
	Chain               []*x509.Certificate // leaf first
	Addr, Version       string              // peer address; what the caller says of its software
}

// Callers proves who calls.
type Callers interface {
	// Robot returns whose access token it is. Denied for one that is not good, which makes an original robot refresh it.
	Robot(ctx context.Context, c Credentials) (thing.ID, error)
	// Service returns the name of the service of ours that calls.
	Service(ctx context.Context, c Credentials) (name string, err error)
}

// Accounts lets services read and purge the documents of a person (jdocs.Personal).
type Accounts interface {
	Held(ctx context.Context, account string) ([]jdocs.Held, error)
	Purge(ctx context.Context, account, by, reason string) error
}

// Published is the service that original robots call, over gRPC and REST.
type Published struct {
	robots   endpoints
	accounts Accounts
	callers  Callers
	log      *slog.Logger
}

// NewPublished returns the service. accounts may be nil: then services are told that there is nothing for them.
func NewPublished(r jdocs.Robots, accounts Accounts, callers Callers, log *slog.Logger) *Published {
	return &Published{makeEndpoints(r, log), accounts, callers, log}
}

// asker is the robot that calls, with what its request says of itself.
func (p *Published) asker(ctx context.Context, c Credentials, user, id string) (jdocs.Asker, error) {
	proved, err := p.callers.Robot(ctx, c)
	return jdocs.Asker{Thing: proved, Said: jdocs.Said{Thing: id, Account: user}, OS: softwareOf(c.Version)}, err
}

func (p *Published) write(ctx context.Context, c Credentials, m *jdocspb.WriteDocReq) (any, error) {
	by, err := p.asker(ctx, c, m.GetUserId(), m.GetThing())
	d := m.GetDoc()
	return writeReq{by, jdocs.Name(m.GetDocName()), jdocs.Doc{Version: d.GetDocVersion(), FmtVersion: d.GetFmtVersion(), ClientMeta: d.GetClientMetadata(),
		JSON: d.GetJsonDoc()}}, err
}

func (p *Published) read(ctx context.Context, c Credentials, m *jdocspb.ReadDocsReq) (any, error) {
	by, err := p.asker(ctx, c, m.GetUserId(), m.GetThing())
	items := make([]jdocs.Item, len(m.GetItems()))
	for i, it := range m.GetItems() {
		items[i] = jdocs.Item{Name: jdocs.Name(it.GetDocName()), MyVersion: it.GetMyDocVersion()}
	}
	return readReq{by, items}, err
}

func (p *Published) remove(ctx context.Context, c Credentials, m *jdocspb.DeleteDocReq) (any, error) {
	by, err := p.asker(ctx, c, m.GetUserId(), m.GetThing())
	return nameReq{by: by, name: jdocs.Name(m.GetDocName())}, err
}

func written(resp any) (*jdocspb.WriteDocResp, error) {
	r, _ := resp.(jdocs.WriteResult)
	return &jdocspb.WriteDocResp{Status: jdocspb.WriteDocResp_Status(r.Status), LatestDocVersion: r.Latest}, nil
}

// documents has a doc in every item: an original robot reads through it without looking.
func documents(resp any) (*jdocspb.ReadDocsResp, error) {
	all, _ := resp.([]jdocs.ReadResult)
	out := &jdocspb.ReadDocsResp{Items: make([]*jdocspb.ReadDocsResp_Item, len(all))}
	for i, r := range all {
		out.Items[i] = &jdocspb.ReadDocsResp_Item{Status: jdocspb.ReadDocsResp_Status(r.Status), Doc: &jdocspb.Jdoc{
			DocVersion: r.Doc.Version, FmtVersion: r.Doc.FmtVersion, ClientMetadata: r.Doc.ClientMeta, JsonDoc: r.Doc.JSON}}
	}
	return out, nil
}

func deleted(any) (*jdocspb.DeleteDocResp, error) { return &jdocspb.DeleteDocResp{}, nil }

// purge erases what an account has here.
func (p *Published) purge(ctx context.Context, c Credentials, account, reason, notes string) error {
	by, err := p.callers.Service(ctx, c)
	if err != nil {
		return err
	}
	if notes != "" {
		reason += ": " + notes
	}
	return p.accounts.Purge(ctx, account, by, reason)
}

// view returns the documents of an account and of its robots; with pii those that say something about the person.
func (p *Published) view(ctx context.Context, c Credentials, account string, pii bool) (*jdocspb.ViewDocsResp, error) {
	if _, err := p.callers.Service(ctx, c); err != nil {
		return nil, err
	}
	held, err := p.accounts.Held(ctx, account)
	out := &jdocspb.ViewDocsResp{}
	for _, h := range held {
		if pii && !h.Name.Personal() {
			continue
		}
		doc := &jdocspb.ViewDoc{Thing: string(h.Thing), DocName: string(h.Name), JsonDoc: h.JSON}
		if h.Thing == "" {
			doc.UserId = account
		}
		out.Docs = append(out.Docs, doc)
	}
	return out, err
}

// Register adds the published service to s.
func (p *Published) Register(s grpc.ServiceRegistrar) {
	admin := func(do func(ctx context.Context, m any) (any, error)) endpoint.Endpoint {
		return endpoint.Chain(kit.Recover(p.log), kit.Timeout(timeout))(do)
	}
	jdocspb.RegisterJdocsServer(s, &server{
		write: kitgrpc.Handler(p.robots.write, func(ctx context.Context, m *jdocspb.WriteDocReq) (any, error) {
			return p.write(ctx, credentials(ctx), m)
		}, written),
		read: kitgrpc.Handler(p.robots.read, func(ctx context.Context, m *jdocspb.ReadDocsReq) (any, error) {
			return p.read(ctx, credentials(ctx), m)
		}, documents),
		remove: kitgrpc.Handler(p.robots.delete, func(ctx context.Context, m *jdocspb.DeleteDocReq) (any, error) {
			return p.remove(ctx, credentials(ctx), m)
		}, deleted),
		purge: kitgrpc.Handler(admin(kit.Typed(func(ctx context.Context, m *jdocspb.PurgeAccountDocsReq) (any, error) {
			return nil, p.purge(ctx, credentials(ctx), m.GetUserId(), m.GetReason(), m.GetNotes())
		})), same[*jdocspb.PurgeAccountDocsReq], func(any) (*jdocspb.PurgeAccountDocsResp, error) { return &jdocspb.PurgeAccountDocsResp{}, nil }),
		view: kitgrpc.Handler(admin(kit.Typed(func(ctx context.Context, m *jdocspb.ViewAccountDocsReq) (any, error) {
			return p.view(ctx, credentials(ctx), m.GetUserId(), false)
		})), same[*jdocspb.ViewAccountDocsReq], viewed),
		pii: kitgrpc.Handler(admin(kit.Typed(func(ctx context.Context, m *jdocspb.ViewAccountDocsReq) (any, error) {
			return p.view(ctx, credentials(ctx), m.GetUserId(), true)
		})), same[*jdocspb.ViewAccountDocsReq], viewed),
	})
}

func same[M any](_ context.Context, m M) (any, error) { return m, nil }

func viewed(resp any) (*jdocspb.ViewDocsResp, error) {
	out, _ := resp.(*jdocspb.ViewDocsResp)
	return out, nil
}

// credentials are those of a gRPC call.
func credentials(ctx context.Context) Credentials {
	p := kitgrpc.PeerFrom(ctx)
	return Credentials{AccessToken: logging.Secret(kitgrpc.Value(ctx, accessToken)), AppKey: logging.Secret(kitgrpc.Value(ctx, appKey)),
		Chain: p.Chain, Addr: p.Addr, Version: kitgrpc.Value(ctx, "user-agent")}
}

// server is the generated interface over handlers.
type server struct {
	jdocspb.UnimplementedJdocsServer

	write     func(context.Context, *jdocspb.WriteDocReq) (*jdocspb.WriteDocResp, error)
	read      func(context.Context, *jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error)
	remove    func(context.Context, *jdocspb.DeleteDocReq) (*jdocspb.DeleteDocResp, error)
	purge     func(context.Context, *jdocspb.PurgeAccountDocsReq) (*jdocspb.PurgeAccountDocsResp, error)
	view, pii func(context.Context, *jdocspb.ViewAccountDocsReq) (*jdocspb.ViewDocsResp, error)
}

func (s *server) WriteDoc(ctx context.Context, m *jdocspb.WriteDocReq) (*jdocspb.WriteDocResp, error) {
	return s.write(ctx, m)
}

func (s *server) ReadDocs(ctx context.Context, m *jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) {
	return s.read(ctx, m)
}

func (s *server) DeleteDoc(ctx context.Context, m *jdocspb.DeleteDocReq) (*jdocspb.DeleteDocResp, error) {
	return s.remove(ctx, m)
}

func (s *server) PurgeAccountDocs(ctx context.Context, m *jdocspb.PurgeAccountDocsReq) (*jdocspb.PurgeAccountDocsResp, error) {
	return s.purge(ctx, m)
}

func (s *server) ViewAccountDocs(ctx context.Context, m *jdocspb.ViewAccountDocsReq) (*jdocspb.ViewDocsResp, error) {
	return s.view(ctx, m)
}

func (s *server) ViewAccountDocsWithPII(ctx context.Context, m *jdocspb.ViewAccountDocsReq) (*jdocspb.ViewDocsResp, error) {
	return s.pii(ctx, m)
}

// softwareOf returns the version in an original robot's user agent, "Victor/<version> grpc-go/1.40.0"; "" for others.
func softwareOf(agent string) string {
	v, ok := strings.CutPrefix(agent, "Victor/")
	if !ok {
		return ""
	}
	v, _, _ = strings.Cut(v, " ")
	return v
}
