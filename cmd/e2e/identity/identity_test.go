package identity

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cmd/e2e/housetest"
)

// TestOriginalRobot (identity issue: what must hold 1 and 3): the original robot's sequence passes; every mistake has its status code and
// an explanation by the doctor; a certificate revoked at one kenneld is refused by another within 2 s.
func TestOriginalRobot(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	ada := h.Owner(t, "ada@example.com", "Ada")
	second, port, _ := h.ServeRobots(t)

	const id = "vic:00e2aa01"
	robot := h.Original(t, maker.Make(id, nil), h.RobotsPort())
	session := ada.AppSession(robot.AppKey)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v; doctor: %s", what, err, admin.Doctor(id))
		}
	}
	must("associate", robot.Associate(t.Context(), session))
	if robot.Claims["user_id"] != ada.ID || robot.Claims["requestor_id"] != id || robot.ClientToken == "" {
		t.Errorf("claims %v, want user %s", robot.Claims, ada.ID)
	}
	must("refresh of the token", robot.RefreshJWT(t.Context()))
	must("another app", robot.Secondary(t.Context(), ada.AppSession(robot.AppKey), "phone", "companion-app"))
	_, err := robot.Reassociate(t.Context(), ada.AppSession(robot.AppKey), "tablet", "companion-app")
	must("another login", err)
	must("credentials for uploads", robot.RefreshSTS(t.Context()))
	ada.Agrees(id, true)
	must("upload of a log", upload(t, h, robot, ada.ID, id))
	var mine []struct{ Thing string }
	ada.Do("GET", "/v1/my/robots", nil, &mine)
	if len(mine) != 1 || mine[0].Thing != id {
		t.Errorf("her robots: %v", mine)
	}
	var apps []struct {
		ID string `json:"id"`
	}
	ada.Do("GET", "/v1/things/"+id+"/apps", nil, &apps)
	if len(apps) != 3 {
		t.Errorf("%d apps, want 3: one for each login", len(apps))
	}

	// Mistakes.
	other := housetest.NewFactory(t)
	for _, c := range []struct {
		name string
		cert tls.Certificate
		use  func(r *tokentest.Robot) error
		want codes.Code
		code string // for the doctor
	}{
		{"a used session", maker.Make(id, nil), func(r *tokentest.Robot) error { return r.Associate(t.Context(), session) }, codes.Unauthenticated, "session_used"},
		{"no such session", maker.Make(id, nil), func(r *tokentest.Robot) error { return r.Associate(t.Context(), "never-issued") }, codes.Unauthenticated, "session_unknown"},
		{"no app key", maker.Make(id, nil), func(r *tokentest.Robot) error {
			r.AppKey = ""
			return r.Associate(t.Context(), ada.AppSession(robot.AppKey))
		}, codes.Unauthenticated, "app_key"},
		{"a foreign chain", other.Make(id, nil), func(r *tokentest.Robot) error { return r.Associate(t.Context(), ada.AppSession(robot.AppKey)) }, codes.Unauthenticated, "foreign_factory"},
		{"another organisation", maker.Make(id, func(c *x509.Certificate) { c.Subject.Organization = []string{"Evil Inc."} }),
			func(r *tokentest.Robot) error { return r.Associate(t.Context(), ada.AppSession(robot.AppKey)) }, codes.Unauthenticated, "wrong_organisation"},
		{"an end too early", maker.Make(id, func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(1, 0, 0) }),
			func(r *tokentest.Robot) error { return r.Associate(t.Context(), ada.AppSession(robot.AppKey)) }, codes.Unauthenticated, "factory_expired"},
	} {
		err := c.use(h.Original(t, c.cert, h.RobotsPort()))
		if status.Code(err) != c.want {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if d := admin.Doctor(id); !strings.Contains(d, c.code) {
			t.Errorf("%s: the doctor does not know of %s: %s", c.name, c.code, d)
		}
	}

	// The robot belongs to another owner: "wrong account".
	bob := h.Owner(t, "bob@example.com", "Bob")
	if _, err := h.Original(t, maker.Make(id, nil), h.RobotsPort()).Reassociate(t.Context(), bob.AppSession(robot.AppKey), "phone",
		"companion-app"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("another person's session: %v, want InvalidArgument", err)
	}

	// Revoked at the first kenneld, refused by the second.
	twin := h.Original(t, robot.TLS.Certificates[0], port)
	twin.Token = robot.Token
	must("refresh at the second kenneld", twin.RefreshJWT(t.Context()))
	began := time.Now()
	ada.Do("DELETE", "/v1/things/"+id+"/tokens", nil, nil)
	took := housetest.Await(t, 10*time.Second, "the second kenneld refuses", func() error {
		if err := twin.RefreshJWT(t.Context()); status.Code(err) != codes.PermissionDenied {
			return fmt.Errorf("refresh: %w", err)
		}
		return nil
	})
	t.Logf("a revoked token is refused by another kenneld after %v (asked in turns of %v)", took.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond))

	// A session that ends at one ends at the other.
	bob2 := bob.With(second)
	bob2.Do("GET", "/v1/me", nil, nil)
	bob.Do("POST", "/v1/logout", nil, nil)
	if code, b := bob2.Try("GET", "/v1/me", nil); code != http.StatusUnauthorized {
		t.Errorf("a session that was ended elsewhere: %d %s", code, b)
	}
}

// upload uploads a file as the original's log uploader does (peer facts, section 1).
func upload(t *testing.T, h *housetest.House, r *tokentest.Robot, user, id string) error {
	t.Helper()
	client := s3.New(s3.Options{
		Region: "us-west-2", UsePathStyle: true, BaseEndpoint: aws.String("https://" + r.Addr),
		Credentials: credentials.NewStaticCredentialsProvider(r.STS.GetAccessKeyId(), r.STS.GetSecretAccessKey(), r.STS.GetSessionToken()),
		HTTPClient:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.TLS.RootCAs, ServerName: "localhost"}}},
	})
	key := "logs/" + user + "/" + base64.StdEncoding.EncodeToString([]byte(id)) + "/2026-11-21-10-00-00-log.gz"
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("kennel"), Key: &key, Body: strings.NewReader("log of " + user)})
	return err
}

// TestUploadCredentialsEnd (issue 16, finding 8): what takes a robot's rights away at one kenneld ends its credentials for uploads, good for hours yet, at
// the S3 doors of all within 2 s.
func TestUploadCredentialsEnd(t *testing.T) {
	const promised = 2 * time.Second
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	ada := h.Owner(t, "ada@example.com", "Ada")
	_, port, _ := h.ServeRobots(t)
	for i, way := range []struct {
		name string
		take func(id string)
	}{
		{"its owner revokes its tokens", func(id string) { ada.Do("DELETE", "/v1/things/"+id+"/tokens", nil, nil) }},
		{"its owner lets go of it", func(id string) { ada.Do("DELETE", "/v1/my/robots/"+id, nil, nil) }},
		{"an operator revokes it", func(id string) {
			admin.Do("POST", "/v1/things/"+id+"/revoke", map[string]string{"reason": "stolen"}, nil)
		}},
	} {
		id := fmt.Sprintf("vic:00e2aa1%d", i)
		robot := h.Original(t, maker.Make(id, nil), h.RobotsPort())
		err := robot.Associate(t.Context(), ada.AppSession(robot.AppKey))
		if err == nil {
			err = robot.RefreshSTS(t.Context())
		}
		if err != nil {
			t.Fatal(way.name, err)
		}
		ada.Agrees(id, true)
		twin := h.Original(t, robot.TLS.Certificates[0], port)
		twin.STS = robot.STS
		for _, r := range []*tokentest.Robot{robot, twin} { // each door has just learned that it may
			if err := upload(t, h, r, ada.ID, id); err != nil {
				t.Fatal(way.name, err)
			}
		}
		way.take(id)
		for _, r := range []*tokentest.Robot{twin, robot} {
			took := housetest.Await(t, 5*promised, way.name+": the door of "+r.Addr+" refuses", func() error {
				var refused interface{ ErrorCode() string }
				if err := upload(t, h, r, ada.ID, id); !errors.As(err, &refused) || refused.ErrorCode() != "AccessDenied" {
					return fmt.Errorf("upload: %v, want AccessDenied", err)
				}
				return nil
			})
			t.Logf("%s: refused after %v", way.name, took.Round(time.Millisecond))
		}
		housetest.Await(t, 20*time.Second, "the doctor says so", func() error {
			if d := admin.Doctor(id); !strings.Contains(d, "log upload") {
				return errors.New(d)
			}
			return nil
		})
	}
}

// TestRevokedRobot: an operator revokes a robot's certificate at one kenneld; the broker closes its session and refuses it from then on.
func TestRevokedRobot(t *testing.T) {
	h := housetest.New(t, "-robots", "2")
	h.Start()
	things := h.AwaitPresent(2)
	second, _, _ := h.ServeRobots(t)
	admin := h.Operator(t)
	began := time.Now()
	admin.With(second).Do("POST", "/v1/things/"+things[0]+"/revoke", map[string]string{"reason": "stolen"}, nil)
	took := housetest.Await(t, 10*time.Second, "the robot is absent", func() error {
		var x struct{ Presence string }
		admin.Do("GET", "/v1/things/"+things[0], nil, &x)
		if x.Presence == "present" {
			return fmt.Errorf("%s is %s", things[0], x.Presence)
		}
		return nil
	})
	t.Logf("from the order to absent %v (%v with the request)", took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	housetest.Await(t, time.Minute, "the doctor knows why", func() error {
		if d := admin.Doctor(things[0]); !strings.Contains(d, "revoked") {
			return fmt.Errorf("doctor: %s", d)
		}
		return nil
	})
	var x struct{ Presence string }
	if admin.Do("GET", "/v1/things/"+things[1], nil, &x); x.Presence != "present" {
		t.Errorf("the other robot is %s", x.Presence)
	}
}

// TestOwnerDeletion (issue: what must hold 6): an owner who leaves can export everything first, and afterwards no row and no object names them.
func TestOwnerDeletion(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	const email, given, place, app = "grace.hopper@example.org", "Gracemurray", "Arlington Heights, Wonderland", "graces-telephone"
	grace := h.Owner(t, email, given)
	const id = "vic:00e2aa77"
	robot := h.Original(t, maker.Make(id, nil), h.RobotsPort())
	if err := robot.Associate(t.Context(), grace.AppSession(robot.AppKey)); err != nil {
		t.Fatal(err)
	}
	if err := robot.Secondary(t.Context(), grace.AppSession(robot.AppKey), app, "companion-app"); err != nil {
		t.Fatal(err)
	}
	if err := robot.RefreshSTS(t.Context()); err != nil {
		t.Fatal(err)
	}
	grace.Agrees(id, true)
	if err := upload(t, h, robot, grace.ID, id); err != nil {
		t.Fatal(err)
	}
	admin.Do("POST", "/v1/things", map[string]string{"thing": id}, nil)
	grace.Do("PATCH", "/v1/things/"+id+"/jdocs/vic.RobotSettings", map[string]any{"set": map[string]string{"default_location": place}}, nil)
	grace.Do("PATCH", "/v1/my/robots/"+id, map[string]string{"name": given + "s robot"}, nil)
	grace.Do("POST", "/v1/things/"+id+"/commands", map[string]any{"kind": "ping"}, nil)

	// Everything is in the export.
	code, b := grace.Try("GET", "/v1/account/export", nil)
	all := unzip(t, b)
	if code != http.StatusOK {
		t.Fatalf("export: %d %s", code, b)
	}
	for _, want := range []string{email, given, place, app, id, "logs/" + grace.ID} {
		if !strings.Contains(all, want) {
			t.Errorf("the export lacks %q:\n%.3000s", want, all)
		}
	}
	found := traces(t, h, email, given, place, app, grace.ID)
	if len(found) < 5 {
		t.Fatalf("the search finds %d traces of somebody who is here: it looks at the wrong place: %q", len(found), found)
	}
	grace.Do("POST", "/v1/account/delete", map[string]string{"password": housetest.OwnersPassword}, nil)
	housetest.Await(t, 2*time.Minute, "nothing names her", func() error {
		if found := traces(t, h, email, given, place, app, grace.ID); len(found) > 0 {
			return fmt.Errorf("%d traces, such as %.400q", len(found), found)
		}
		return nil
	})
	if code, _ := grace.Try("GET", "/v1/me", nil); code != http.StatusUnauthorized {
		t.Errorf("her session: %d", code)
	}
	var x struct{ Account string }
	if admin.Do("GET", "/v1/things/"+id+"/owner", nil, &x); x.Account != "" {
		t.Errorf("the robot is still hers")
	}
}

func unzip(t *testing.T, b []byte) string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("export: %v: %.300s", err, b)
	}
	var out strings.Builder
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "== %s\n%s\n", f.Name, text)
	}
	return out.String()
}

// traces searches every column of every table, every object with its name, and every letter for words.
func traces(t *testing.T, h *housetest.House, words ...string) (found []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := h.DB(t)
	defer db.Close(ctx)
	rows, err := db.Query(ctx, `SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var full string
		if err := rows.Scan(&full); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, full)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if len(tables) < 20 {
		t.Fatalf("only %d tables", len(tables))
	}
	for _, full := range tables {
		for _, w := range words {
			var n int
			if err := db.QueryRow(ctx, `SELECT count(*) FROM `+full+` x WHERE x::text ILIKE '%' || $1 || '%'`, w).Scan(&n); err != nil {
				t.Fatalf("%s: %v", full, err)
			}
			if n > 0 {
				found = append(found, fmt.Sprintf("%d rows of %s: %s", n, full, w))
			}
		}
	}
	for _, dir := range []string{filepath.Join(h.Dir, "s3"), h.Ready.Files["mail"]} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what goes away meanwhile is no trace
			if err != nil {
				return nil
			}
			var text []byte
			if !d.IsDir() {
				text, _ = os.ReadFile(path)
			}
			for _, w := range words {
				if strings.Contains(filepath.Base(path), w) || bytes.Contains(text, []byte(w)) {
					found = append(found, path+": "+w)
				}
			}
			return nil
		})
	}
	return found
}
