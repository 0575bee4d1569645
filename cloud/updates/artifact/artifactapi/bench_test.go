package artifactapi_test

import (
	"bytes"
	"context"
	"crypto/rsa"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kennel/cloud/updates/artifact"
	"kennel/cloud/updates/artifact/artifactapi"
	"kennel/cloud/updates/artifact/artifactpg"
	"kennel/infra/bench"
	"kennel/infra/blob/blobtest"
	"kennel/infra/pg/pgtest"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/otaapi"
	"kennel/ota/otapg"
)

const (
	checkClients = 8
	checkSlice   = 250 * time.Millisecond
)

// BenchmarkUpdateChecksBesideSelect asks for updates beside a bare handler that selects one row by its index, over HTTP: as original robots do, who find no delta,
// and as agents do, who are given a presigned address (issue 17, "what must hold" 6).
func BenchmarkUpdateChecksBesideSelect(b *testing.B) { updateChecks(b) }

func TestUpdateChecksBesideSelect(t *testing.T) {
	bench.Soak(t)
	updateChecks(t)
}

func updateChecks(tb testing.TB) {
	pool, ctx := pgtest.Durable(tb, checkClients), tb.Context()
	releases := ota.New(otapg.New(pool), nil)
	svc := artifact.New(artifact.Config{Store: artifactpg.New(pool), Objects: blobtest.New(tb), Add: releases.AddRelease,
		Keys: []*rsa.PublicKey{&archivetest.Key().PublicKey}, Log: slog.New(slog.DiscardHandler)})
	releases.Supply(svc)
	now := full("2.0.1.6079")
	if _, err := svc.Upload(ctx, artifact.Upload{Species: "vic", SHA256: sumOf(now), Size: int64(len(now)), Body: bytes.NewReader(now),
		Audit: func(context.Context, string, string, string) error { return nil }}); err != nil {
		tb.Fatal(err)
	}
	// Other releases, so that there is something to find it among.
	if _, err := pool.Exec(ctx, `INSERT INTO artifact_archive (species, sha256, version, kind, base, qsn, dev, size, manifest, by_whom)
		SELECT 'vic', md5('a' || v || ' ' || b) || md5('b' || v || ' ' || b), '1.0.0.' || v, 'delta', '1.0.0.' || b, '', false, 1, '{}', '' FROM generate_series(1, 100) v, generate_series(101, 150) b`); err != nil {
		tb.Fatal(err)
	}
	if _, err := svc.SetChannel(ctx, artifact.Channel{Species: "vic", Channel: "prod", Version: "2.0.1.6079"}); err != nil {
		tb.Fatal(err)
	}
	if _, err := releases.SetSpeciesDesired(ctx, "vic", "2.0.1.6079", "op"); err != nil {
		tb.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ANALYZE`); err != nil {
		tb.Fatal(err)
	}

	desired := otaapi.NewMQTT(releases, slog.New(slog.DiscardHandler)).Desired()
	files := artifactapi.NewFiles(svc, checkClients, func(_, _, _, _ string) {}, func(_, _ string, _ int) {}, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.Handle("/vic/", files.Or(http.NotFoundHandler()))
	mux.HandleFunc("POST /desired", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body, err = desired(r.Context(), "vic:00e20100", body)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write(body) // the client looks
	})
	mux.HandleFunc("GET /bare", func(w http.ResponseWriter, r *http.Request) {
		var sha string
		var size int64
		if err := pool.QueryRow(r.Context(), `SELECT sha256, size FROM artifact_archive WHERE species = $1 AND version = $2 AND kind = 'production' AND base = '' AND qsn = ''`,
			"vic", "2.0.1.6079").Scan(&sha, &size); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprintf(w, `{"sha256":%q,"size":%d}`, sha, size)
	})
	server := httptest.NewServer(mux)
	tb.Cleanup(server.Close)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: checkClients}}

	rate := func(method, path, body string, status int) (float64, error) {
		return bench.During(ctx, bench.Part(tb, checkSlice), checkClients, func(ctx context.Context, _ int) error {
			r, err := http.NewRequestWithContext(ctx, method, server.URL+path, bytes.NewReader([]byte(body)))
			if err != nil {
				return err
			}
			resp, err := client.Do(r)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != status {
				return fmt.Errorf("%s: %d, %v; want %d", path, resp.StatusCode, err, status)
			}
			return nil
		})
	}
	note := fmt.Sprintf("%d clients, over HTTP; reference: a bare handler that selects one row by its index", checkClients)
	lines := []struct {
		bench.Line
		method, path, body string
		status             int
		pairs              []bench.Pair
	}{
		{Line: bench.Line{Name: "updatechecks/original", Unit: "checks/s", Bound: 0.4, Note: "an original robot that runs what its channel offers; " + note}, method: "GET",
			path: "/vic/prod/diff/2.0.1.6079.ota?victorversion=2.0.1.6079&victortarget=1", status: 404},
		{Line: bench.Line{Name: "updatechecks/agent", Unit: "checks/s", Bound: 0.4, Note: "an agent that gets the address of the archive; " + note}, method: "POST",
			path: "/desired", body: `{"v":1,"running":"1.8.0.6051"}`, status: 200},
	}
	bench.Turns(tb, func() error {
		for i := range lines {
			l := &lines[i]
			v, err := rate(l.method, l.path, l.body, l.status)
			if err != nil {
				return err
			}
			r, err := rate("GET", "/bare", "", 200)
			if err != nil {
				return err
			}
			l.pairs = append(l.pairs, bench.Pair{Value: v, Reference: r})
		}
		return nil
	})
	for _, l := range lines {
		bench.Report(tb, l.Line, l.pairs)
	}
}
