// Package replay plays the cloud process of an original robot as a client: the self-test of a cloud plays one (package originals), and so do
// tests. What it sends, over which connection and with which certificate is written from the peer facts, section 1. It is as strict as the
// original about answers: Fatal is one of the answers that stop the original for good.
package replay

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"kennel/infra/api/tokenpb"
)

// ServerConfig is the robot's server_config.json (VEC-CLD-01).
type ServerConfig struct {
	Jdocs    string `json:"jdocs"`    // host:port
	Tms      string `json:"tms"`      // host:port of the token service
	Chipper  string `json:"chipper"`  // host:port
	Check    string `json:"check"`    // host/ok or host:port/ok
	LogFiles string `json:"logfiles"` // s3://bucket/prefix
	AppKey   string `json:"appkey"`
}

// Fatal is an answer that stops the cloud process of an original robot for good.
type Fatal struct{ What string }

func (f Fatal) Error() string { return "the cloud process of an original robot dies: " + f.What }

// Robot is an original robot. It makes one call at a time.
type Robot struct {
	Servers ServerConfig
	Roots   *x509.CertPool  // the robot's own: compiled in, and /etc/ssl/certs/local/root.crt; nil: the system's
	Cert    tls.Certificate // of the factory; only the token service sees it
	Thing   string          // CN of Cert: the thing of its documents
	OS      string          // fingerprint of its OS, such as 2.0.1.6076
	Gateway []byte          // certificate of its SDK gateway, PEM
	// Dial opens connections; nil: the system's way.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// FramePause is the time between two pieces of audio, 120 ms on a robot. RetryPause is the first pause of a forced refresh, 10 s on a robot, and
	// the one before a file or events are sent again.
	FramePause, RetryPause time.Duration

	Token       string         // the content of its token file; "": there is none
	Claims      map[string]any // of Token; the robot does not check its signature
	ClientToken string         // of the app that logged in last
	STS         *tokenpb.StsToken
	Forced      int  // forced refreshes
	Stopped     bool // a forced refresh was refused: the robot makes no further one
}

// New returns a robot with the pauses of a real one. robotBuild: the certificate must be as the factory made it, or the process stops with
// fault 850: exactly one O, Anki Inc., a CN vic:<esn>, and a life beyond 2100.
func New(servers ServerConfig, roots *x509.CertPool, cert tls.Certificate, robotBuild bool) (*Robot, error) {
	leaf := cert.Leaf
	if leaf == nil && len(cert.Certificate) > 0 {
		var err error
		if leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
			return nil, fmt.Errorf("robot's certificate: %w", err)
		}
	}
	if leaf == nil {
		return nil, fmt.Errorf("robot without a certificate")
	}
	name := leaf.Subject.CommonName
	esn, ok := strings.CutPrefix(name, "vic:")
	if !ok || esn == "" {
		return nil, Fatal{fmt.Sprintf("850: CN %.40q of its certificate, want vic:<esn>", name)}
	}
	if robotBuild {
		if !slices.Equal(leaf.Subject.Organization, []string{"Anki Inc."}) {
			return nil, Fatal{fmt.Sprintf("850: O %.80q of its certificate, want exactly one, Anki Inc.", leaf.Subject.Organization)}
		}
		if !leaf.NotAfter.After(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
			return nil, Fatal{fmt.Sprintf("850: its certificate ends on %s, want later than 2100-01-01", leaf.NotAfter.Format(time.DateOnly))}
		}
	}
	return &Robot{Servers: servers, Roots: roots, Cert: cert, Thing: name, OS: "2.0.1.6076", FramePause: 120 * time.Millisecond, RetryPause: 10 * time.Second}, nil
}

// JSON returns the text of the file.
func (c ServerConfig) JSON() string {
	b, _ := json.MarshalIndent(c, "", "  ") // strings alone
	return string(b)
}

// Names returns the host names that a robot with this configuration looks up, each with the port that it dials.
func (c ServerConfig) Names() []string {
	var out []string
	add := func(addr string) {
		if addr != "" && !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	add(c.Tms)
	add(c.Jdocs)
	add(c.Chipper)
	host, _, _ := strings.Cut(c.Check, "/")
	if _, _, err := net.SplitHostPort(host); host != "" && err != nil {
		host = net.JoinHostPort(host, "443")
	}
	add(host)
	if bucket, _ := c.bucket(); bucket != "" {
		add(net.JoinHostPort(UploadHost(bucket), "443"))
	}
	return out
}

// tls returns the settings for a connection to addr; certs are those that the other side may see.
func (r *Robot) tls(addr string, certs ...tls.Certificate) *tls.Config {
	host, _, _ := net.SplitHostPort(addr)
	return &tls.Config{RootCAs: r.Roots, ServerName: host, Certificates: certs, MinVersion: tls.VersionTLS12}
}

func (r *Robot) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if r.Dial != nil {
		return r.Dial(ctx, network, addr)
	}
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// metadata goes with every call of a connection.
type metadata map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (m metadata) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return m, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (metadata) RequireTransportSecurity() bool { return true }

// access is the metadata of a robot that has a token, or of one that has none.
func (r *Robot) access() metadata {
	md := metadata{"anki-app-key": r.Servers.AppKey}
	if r.Token != "" {
		md["anki-access-token"] = r.Token
	}
	return md
}

// connect opens a connection for one request: the original never keeps one.
func (r *Robot) connect(addr string, md metadata, certs ...tls.Certificate) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(r.tls(addr, certs...))), grpc.WithPerRPCCredentials(md),
		grpc.WithUserAgent("Victor/"+r.OS), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return r.dial(ctx, "tcp", addr) }))
}

func (r *Robot) token(md metadata, do func(tokenpb.TokenClient) error) error {
	conn, err := r.connect(r.Servers.Tms, md, r.Cert)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(tokenpb.NewTokenClient(conn))
}

// Associate hands over the session that an app got for its user, which makes the user the owner.
func (r *Robot) Associate(ctx context.Context, session string) error {
	return r.token(metadata{"anki-app-key": r.Servers.AppKey, "anki-user-session": session}, func(c tokenpb.TokenClient) error {
		resp, err := c.AssociatePrimaryUser(ctx, &tokenpb.AssociatePrimaryUserRequest{SessionCertificate: r.Gateway})
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{"AssociatePrimaryUserResponse without data"}
		}
		r.ClientToken, r.STS = resp.Data.ClientToken, nil
		return r.store(resp.Data.Token)
	})
}

// Refresh replaces the token, as the robot does three hours before it expires.
func (r *Robot) Refresh(ctx context.Context) error {
	return r.refresh(ctx, &tokenpb.RefreshTokenRequest{RefreshJwtTokens: true}, func(b *tokenpb.TokenBundle) error { return r.store(b.Token) })
}

// RefreshSTS asks for credentials for uploads.
func (r *Robot) RefreshSTS(ctx context.Context) error {
	return r.refresh(ctx, &tokenpb.RefreshTokenRequest{RefreshStsTokens: true}, func(b *tokenpb.TokenBundle) error {
		if b.StsToken == nil {
			return Fatal{"a refresh of temporary credentials answered without sts_token"}
		}
		if _, err := time.Parse(time.RFC3339, b.StsToken.Expiration); err != nil {
			return fmt.Errorf("expiration of temporary credentials: %w", err)
		}
		r.STS = b.StsToken
		return nil
	})
}

func (r *Robot) refresh(ctx context.Context, req *tokenpb.RefreshTokenRequest, use func(*tokenpb.TokenBundle) error) error {
	return r.token(r.access(), func(c tokenpb.TokenClient) error {
		resp, err := c.RefreshToken(ctx, req)
		if err != nil {
			return err
		}
		if resp.Data == nil {
			return Fatal{"RefreshTokenResponse without data"}
		}
		return use(resp.Data)
	})
}

// Claims reads a token as the robot does before it writes its file, without a look at the signature: every claim is a string, and the two
// times are RFC 3339. The error is Fatal.
func Claims(token string) (map[string]any, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, Fatal{fmt.Sprintf("a token of %d parts, want 3", len(parts))}
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, Fatal{"token: " + err.Error()}
	}
	var claims map[string]any
	if err := json.Unmarshal(body, &claims); err != nil {
		return nil, Fatal{"token: " + err.Error()}
	}
	for _, name := range []string{"token_id", "token_type", "user_id", "requestor_id", "iat", "expires"} {
		text, ok := claims[name].(string)
		if !ok {
			return nil, Fatal{fmt.Sprintf("claim %s is a %T, want a string", name, claims[name])}
		}
		if _, err := time.Parse(time.RFC3339, text); err != nil && (name == "iat" || name == "expires") {
			return nil, Fatal{fmt.Sprintf("claim %s: %v", name, err)}
		}
	}
	if claims["user_id"] == "" {
		return nil, Fatal{"claim user_id is empty: the token file is deleted at the next start"}
	}
	return claims, nil
}

func (r *Robot) store(token string) error {
	claims, err := Claims(token)
	if err == nil {
		r.Token, r.Claims = token, claims
	}
	return err
}

// User returns whose robot it is, by its token; "" without one.
func (r *Robot) User() string {
	user, _ := r.Claims["user_id"].(string)
	return user
}

// Times of a forced refresh (peer facts, section 1).
const (
	maxRetryPause = 2 * time.Minute
	maxForced     = time.Hour
)

// heard passes an answer's error on. PermissionDenied makes the robot refresh its token first: at once, then with growing pauses, until a
// refresh succeeds or is itself refused so.
func (r *Robot) heard(ctx context.Context, err error) error {
	if status.Code(err) != codes.PermissionDenied || r.Stopped {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxForced)
	defer cancel()
	for pause := r.RetryPause; ; pause = min(pause*3/2, maxRetryPause) {
		refused := r.Refresh(ctx)
		switch {
		case refused == nil:
			r.Forced++
			return err
		case status.Code(refused) == codes.PermissionDenied:
			r.Stopped = true
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// sessionID is 16 hexadecimal digits and dashes.
func sessionID() string {
	b := make([]byte, 7)
	_, _ = rand.Read(b) // never fails
	text := fmt.Sprintf("%x", b)
	return text[:4] + "-" + text[4:8] + "-" + text[8:]
}
