package originalswire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/cloud/token"
	"kennel/cloud/token/tokentest"
	"kennel/infra/api/jdocspb"
	"kennel/infra/bench"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/pg/pgtest"
	"kennel/infra/thing"
	"kennel/jdocs"
	"kennel/jdocs/jdocsapi"
	"kennel/jdocs/jdocspg"
)

// benchClients ask at once, each on a connection of its own, for one of as many robots.
const (
	benchClients = 8
	benchSlice   = 250 * time.Millisecond
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkDocumentWritesBesideBare writes the statistics of robots beside a bare handler with one SQL statement on the same bytes: both over
// gRPC with TLS, on one Postgres that syncs every commit to disk (issue 15, "what must hold" 4).
func BenchmarkDocumentWritesBesideBare(b *testing.B) { documentsBesideBare(b, true) }

// BenchmarkDocumentReadsBesideBare reads them in the same way.
func BenchmarkDocumentReadsBesideBare(b *testing.B) { documentsBesideBare(b, false) }

func TestDocumentsBesideBare(t *testing.T) {
	bench.Soak(t)
	documentsBesideBare(t, true)
	documentsBesideBare(t, false)
}

// bare has one statement for each call. It knows no version, history, token or app key.
type bare struct {
	jdocspb.UnimplementedJdocsServer
	pool *pgxpool.Pool
}

func (s bare) WriteDoc(ctx context.Context, m *jdocspb.WriteDocReq) (*jdocspb.WriteDocResp, error) {
	var v uint64
	err := s.pool.QueryRow(ctx, `INSERT INTO bare_doc AS d VALUES ($1, $2, 1, $3) ON CONFLICT (thing, name) DO UPDATE
		SET doc_version = d.doc_version + 1, json_doc = excluded.json_doc RETURNING doc_version`, m.Thing, m.DocName, m.Doc.JsonDoc).Scan(&v)
	return &jdocspb.WriteDocResp{LatestDocVersion: v}, err
}

func (s bare) ReadDocs(ctx context.Context, m *jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) {
	d := &jdocspb.Jdoc{FmtVersion: 1}
	err := s.pool.QueryRow(ctx, `SELECT doc_version, json_doc FROM bare_doc WHERE thing = $1 AND name = $2`, m.Thing, m.Items[0].DocName).Scan(&d.DocVersion, &d.JsonDoc)
	return &jdocspb.ReadDocsResp{Items: []*jdocspb.ReadDocsResp_Item{{Doc: d}}}, err
}

func serveTLS(b testing.TB, h *tokentest.House, register func(grpc.ServiceRegistrar)) string {
	leaf := h.ServerCA.Leaf(b, x509.Certificate{Subject: pkix.Name{CommonName: "documents"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{leaf}}, slog.New(slog.DiscardHandler))
	register(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) }) // ends with Stop
	b.Cleanup(func() { s.Stop(); serving.Wait() })
	return l.Addr().String()
}

func documentsBesideBare(b testing.TB, write bool) {
	pool := pgtest.Durable(b, benchClients)
	h := tokentest.New(b, pool)
	tokens := h.Start(b, tokentest.WithConfig(func(c *token.Config) { c.Log = slog.New(slog.DiscardHandler) }))
	ctx := b.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE bare_doc (thing text, name text, doc_version bigint, json_doc text, PRIMARY KEY (thing, name))`); err != nil {
		b.Fatal(err)
	}
	published := jdocsapi.NewPublished(jdocs.Robots{Docs: jdocs.New(jdocspg.New(pool))}, nil, callers{tokens.Service}, slog.New(slog.DiscardHandler))
	addrs := []string{serveTLS(b, h, func(s grpc.ServiceRegistrar) { jdocspb.RegisterJdocsServer(s, bare{pool: pool}) }), serveTLS(b, h, published.Register)}
	text := jdocs.Default(jdocs.RobotLifetimeStats).JSON
	var writes, reads [2][]func() error
	for i := range benchClients {
		id := thing.ID(fmt.Sprintf("vic:%08x", i))
		r := tokens.Robot(b, id)
		if err := r.Associate(ctx, h.Sessions.Issue("anna")); err != nil {
			b.Fatal(err)
		}
		asked := metadata.AppendToOutgoingContext(ctx, "anki-access-token", r.Token, "anki-app-key", tokentest.AppKey)
		for n, addr := range addrs {
			conf := r.TLS.Clone()
			conf.Certificates = nil // robots show theirs to the token service alone
			conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() }) // the benchmark is over
			c, version := jdocspb.NewJdocsClient(conn), uint64(0)
			writes[n] = append(writes[n], func() error {
				resp, err := c.WriteDoc(asked, &jdocspb.WriteDocReq{UserId: "anna", Thing: string(id), DocName: string(jdocs.RobotLifetimeStats),
					Doc: &jdocspb.Jdoc{DocVersion: version, FmtVersion: 1, JsonDoc: text}})
				if err != nil {
					return err
				}
				if version++; resp.Status != jdocspb.WriteDocResp_ACCEPTED || resp.LatestDocVersion != version {
					return fmt.Errorf("%v at version %d, want %d", resp.Status, resp.LatestDocVersion, version)
				}
				return nil
			})
			reads[n] = append(reads[n], func() error {
				resp, err := c.ReadDocs(asked, &jdocspb.ReadDocsReq{UserId: "anna", Thing: string(id), Items: []*jdocspb.ReadDocsReq_Item{{DocName: string(jdocs.RobotLifetimeStats)}}})
				if err == nil && resp.Items[0].Doc.JsonDoc != text {
					err = errors.New("another text")
				}
				return err
			})
		}
	}
	calls, line := reads, bench.Line{Name: "documents/read", Unit: "reads/s", Bound: 0.5, Note: "a bare handler that selects the text"}
	for n := range reads {
		for i := range benchClients { // what is read must be there; and connections and statements are ready
			if err := writes[n][i](); err != nil {
				b.Fatal(err)
			}
		}
	}
	if write {
		calls, line = writes, bench.Line{Name: "documents/write", Unit: "writes/s", Bound: 0.5, Note: "a bare handler that upserts the text in one statement"}
	}
	line.Note = fmt.Sprintf("%d clients, statistics of %d bytes, over gRPC and TLS, every commit synced; reference: %s", benchClients, len(text), line.Note)
	rate := func(n int) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			return bench.During(ctx, bench.Part(b, benchSlice), benchClients, func(_ context.Context, i int) error { return calls[n][i]() })
		}
	}
	bench.Beside(b, line, rate(1), rate(0))
}
