package originalswire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokentest"
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

// documentCalls returns what each client does to write and to read its document: first by the bare handler, then by ours.
func documentCalls(b testing.TB) (writes, reads [2][]func() error) {
	pool := pgtest.Durable(b, benchClients)
	h := tokentest.New(b, pool)
	tokens := h.Start(b, tokentest.WithConfig(func(c *token.Config) { c.Log = slog.New(slog.DiscardHandler) }))
	ctx := b.Context()
	if _, err := pool.Exec(ctx, `CREATE TABLE bare_doc (thing text, name text, doc_version bigint, json_doc text, PRIMARY KEY (thing, name))`); err != nil {
		b.Fatal(err)
	}
	published := jdocsapi.NewPublished(jdocs.Robots{Docs: jdocs.New(jdocspg.New(pool))}, nil, callers{tokens.Service}, slog.New(slog.DiscardHandler))
	addrs := []string{serveTLS(b, h, func(s grpc.ServiceRegistrar) { jdocspb.RegisterJdocsServer(s, bare{pool: pool}) }), serveTLS(b, h, published.Register)}
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
					Doc: &jdocspb.Jdoc{DocVersion: version, FmtVersion: 1, JsonDoc: documentText}})
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
				if err == nil && resp.Items[0].Doc.JsonDoc != documentText {
					err = errors.New("another text")
				}
				return err
			})
		}
	}
	for n := range reads {
		for i := range benchClients { // what is read must be there; and connections and statements are ready
			if err := writes[n][i](); err != nil {
				b.Fatal(err)
			}
		}
	}
	return writes, reads
}

var documentText = jdocs.Default(jdocs.RobotLifetimeStats).JSON

func documentsBesideBare(b testing.TB, write bool) {
	writes, reads := documentCalls(b)
	calls, line := reads, bench.Line{Name: "documents/read", Unit: "reads/s", Bound: 0.5, Note: "a bare handler that selects the text"}
	if write {
		calls, line = writes, bench.Line{Name: "documents/write", Unit: "writes/s", Bound: 0.5, Note: "a bare handler that upserts the text in one statement"}
	}
	line.Note = fmt.Sprintf("%d clients, statistics of %d bytes, over gRPC and TLS, every commit synced; reference: %s", benchClients, len(documentText), line.Note)
	// rate returns calls a second, and the processor time of each in microseconds: of clients, server and Postgres.
	rate := func(n int) (perSecond, micros float64, err error) {
		start, before := time.Now(), bench.UsageOfAll(bench.Family(os.Getpid())...)
		perSecond, err = bench.During(b.Context(), bench.Part(b, benchSlice), benchClients, func(_ context.Context, i int) error { return calls[n][i]() })
		took, used := time.Since(start), bench.UsageOfAll(bench.Family(os.Getpid())...).CPU-before.CPU
		return perSecond, float64(used.Microseconds()) / (perSecond * took.Seconds()), err
	}
	var rates, cpu []bench.Pair
	bench.Turns(b, func() error {
		v, vcpu, err := rate(1)
		if err != nil {
			return err
		}
		r, rcpu, err := rate(0)
		rates, cpu = append(rates, bench.Pair{Value: v, Reference: r}), append(cpu, bench.Pair{Value: vcpu, Reference: rcpu})
		return err
	})
	bench.Report(b, line, rates)
	line.Name, line.Unit, line.Less, line.Bound, line.Note = line.Name+"-cpu", "us", true, 0, "processor time of clients, server and Postgres for each; "+line.Note
	bench.Report(b, line, cpu)
}

// BenchmarkDocumentLatencyBesideBare measures how long one client alone waits, in the median, for a write and for a read.
func BenchmarkDocumentLatencyBesideBare(b *testing.B) { documentLatency(b) }

func documentLatency(b testing.TB) {
	const each = 500
	writes, reads := documentCalls(b)
	median := func(call func() error) (float64, error) {
		took := make([]float64, bench.Part(b, each))
		for i := range took {
			start := time.Now()
			if err := call(); err != nil {
				return 0, err
			}
			took[i] = time.Since(start).Seconds() * 1e3
		}
		return bench.Median(took), nil
	}
	var pairs [2][]bench.Pair
	bench.Turns(b, func() error {
		for i, calls := range [2][2][]func() error{writes, reads} {
			v, err := median(calls[1][0])
			if err != nil {
				return err
			}
			r, err := median(calls[0][0])
			if err != nil {
				return err
			}
			pairs[i] = append(pairs[i], bench.Pair{Value: v, Reference: r})
		}
		return nil
	})
	for i, name := range []string{"write", "read"} {
		bench.Report(b, bench.Line{Name: "documents/" + name + "-p50", Unit: "ms", Less: true,
			Note: fmt.Sprintf("median of one client's %ss, statistics of %d bytes, over gRPC and TLS, every commit synced; reference: the bare handler", name, len(documentText))}, pairs[i])
	}
}

func TestDocumentLatency(t *testing.T) {
	bench.Soak(t)
	documentLatency(t)
}

// Documents of a big and of a small fleet.
const manyDocuments, fewDocuments = 1_000_000, 1000

// BenchmarkManyDocumentsBesideFew writes and reads statistics of robots chosen at random: of a million beside a thousand, in two databases
// that sync every commit to disk. At least 1 in 1.2 is demanded.
func BenchmarkManyDocumentsBesideFew(b *testing.B) { manyDocumentsBesideFew(b) }

func TestManyDocumentsBesideFew(t *testing.T) {
	bench.Soak(t)
	manyDocumentsBesideFew(t)
}

func manyDocumentsBesideFew(b testing.TB) {
	var write, read [2]func(context.Context) (float64, error)
	for i, n := range []int{bench.Part(b, manyDocuments), fewDocuments} {
		write[i], read[i] = amongDocuments(b, n)
	}
	var pairs [2][]bench.Pair
	bench.Turns(b, func() error {
		for i, rates := range [2][2]func(context.Context) (float64, error){write, read} {
			many, err := rates[0](b.Context())
			if err != nil {
				return err
			}
			few, err := rates[1](b.Context())
			if err != nil {
				return err
			}
			pairs[i] = append(pairs[i], bench.Pair{Value: many, Reference: few})
		}
		return nil
	})
	for i, name := range []string{"write", "read"} {
		bench.Report(b, bench.Line{Name: "documents/" + name + "-many", Unit: name + "s/s", Bound: 1 / 1.2,
			Note: fmt.Sprintf("%d at once, each of a robot chosen at random among %d, over gRPC and TLS, every commit synced; reference: among %d",
				benchClients, bench.Part(b, manyDocuments), fewDocuments)}, pairs[i])
	}
}

// amongDocuments fills a database with the statistics of n robots and returns the rates of writes and of reads there.
func amongDocuments(b testing.TB, n int) (write, read func(context.Context) (float64, error)) {
	pool := pgtest.Durable(b, benchClients)
	ctx := b.Context()
	for _, sql := range []string{
		`INSERT INTO jdocs_doc (thing, account, name, doc_version, fmt_version, client_meta, json_doc, changed_by)
			SELECT 'vic:' || lpad(to_hex(i), 8, '0'), '', $2, 1, 1, '', $3, 'vic:' || lpad(to_hex(i), 8, '0') FROM generate_series(0, $1 - 1) i`,
		`INSERT INTO jdocs_history (thing, account, name, doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at)
			SELECT thing, account, name, doc_version, fmt_version, client_meta, json_doc, deleted, changed_by, changed_at FROM jdocs_doc LIMIT $1`,
	} {
		args := []any{n, string(jdocs.RobotLifetimeStats), documentText}
		if _, err := pool.Exec(ctx, sql, args[:1+2*strings.Count(sql, "$3")]...); err != nil {
			b.Fatal(err)
		}
	}
	for _, sql := range []string{"VACUUM ANALYZE jdocs_doc, jdocs_history", "CHECKPOINT"} { // so that none of it runs beside a measurement
		if _, err := pool.Exec(ctx, sql); err != nil {
			b.Fatal(err)
		}
	}
	h := tokentest.New(b, pool)
	published := jdocsapi.NewPublished(jdocs.Robots{Docs: jdocs.New(jdocspg.New(pool))}, nil, trusting{}, slog.New(slog.DiscardHandler))
	addr := serveTLS(b, h, published.Register)
	versions := make([]map[string]uint64, benchClients) // of those that a client changed: no two choose one robot
	random := make([]*rand.Rand, benchClients)
	clients := make([]jdocspb.JdocsClient, benchClients)
	for i := range benchClients {
		versions[i], random[i] = map[string]uint64{}, rand.New(rand.NewPCG(uint64(i), 1))
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: h.ServerCA.Pool()})))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() }) // the benchmark is over
		clients[i] = jdocspb.NewJdocsClient(conn)
	}
	rate := func(do func(ctx context.Context, i int, id string) error) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			return bench.During(ctx, 8*bench.Part(b, benchSlice), benchClients, func(_ context.Context, i int) error { // to its end, so that the version is known
				id := fmt.Sprintf("vic:%08x", random[i].IntN(n/benchClients)*benchClients+i)
				return do(metadata.AppendToOutgoingContext(ctx, "anki-access-token", id, "anki-app-key", tokentest.AppKey), i, id)
			})
		}
	}
	return rate(func(ctx context.Context, i int, id string) error {
			version := max(1, versions[i][id])
			resp, err := clients[i].WriteDoc(ctx, &jdocspb.WriteDocReq{Thing: id, DocName: string(jdocs.RobotLifetimeStats),
				Doc: &jdocspb.Jdoc{DocVersion: version, FmtVersion: 1, JsonDoc: documentText}})
			if err == nil && resp.Status != jdocspb.WriteDocResp_ACCEPTED {
				err = fmt.Errorf("%v at version %d of %s", resp.Status, version, id)
			}
			versions[i][id] = resp.GetLatestDocVersion()
			return err
		}), rate(func(ctx context.Context, i int, id string) error {
			resp, err := clients[i].ReadDocs(ctx, &jdocspb.ReadDocsReq{Thing: id, Items: []*jdocspb.ReadDocsReq_Item{{DocName: string(jdocs.RobotLifetimeStats)}}})
			if err == nil && resp.Items[0].Doc.JsonDoc != documentText {
				err = errors.New("another text")
			}
			return err
		})
}

// trusting takes an access token for the name of a robot: a million robots have no tokens here.
type trusting struct{}

func (trusting) Robot(_ context.Context, c jdocsapi.Credentials) (thing.ID, error) {
	return thing.ID(c.AccessToken.Reveal()), nil
}

func (trusting) Service(context.Context, jdocsapi.Credentials) (string, error) {
	return "", errors.New("no service calls here")
}
