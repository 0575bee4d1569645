package tokentest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	grpcmd "google.golang.org/grpc/metadata"

	"kennel/cloud/identity/token"
	"kennel/infra/api/tokenpb"
	"kennel/infra/thing"
)

// Bare is the least work of a refresh, as a yardstick for benchmarks: it verifies a token (ES256), reads one row, inserts one durably
// and signs. Its tables are its own; it knows no associations, revocations, limits or app keys. Safe for concurrent use.
type Bare struct {
	tokenpb.UnimplementedTokenServer

	pool *pgxpool.Pool
	key  *ecdsa.PrivateKey // on P-256
}

// NewBare returns a handler whose tables exist (Init).
func NewBare(pool *pgxpool.Pool, key *ecdsa.PrivateKey) *Bare { return &Bare{pool: pool, key: key} }

// Init makes the tables.
func (s *Bare) Init(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `CREATE TABLE bare_owner (thing text PRIMARY KEY, user_id text NOT NULL);
		CREATE TABLE bare_token (id uuid PRIMARY KEY, thing text NOT NULL, issued_at timestamptz NOT NULL, expires_at timestamptz NOT NULL)`)
	return err
}

// First makes user the owner of a thing and returns its first token.
func (s *Bare) First(ctx context.Context, id thing.ID, user string) (string, error) {
	if _, err := s.pool.Exec(ctx, `INSERT INTO bare_owner VALUES ($1, $2)`, id, user); err != nil {
		return "", err
	}
	return s.sign(bareClaims(id, user))
}

func bareClaims(id thing.ID, user string) token.Claims {
	now := time.Now()
	return token.Access{ID: uuid.NewString(), Thing: id, User: user, Issued: now, Expires: now.Add(24 * time.Hour)}.Claims()
}

func (s *Bare) sign(c token.Claims) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodES256, c).SignedString(s.key)
}

// RefreshToken implements tokenpb.TokenServer.
func (s *Bare) RefreshToken(ctx context.Context, _ *tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
	raw := grpcmd.ValueFromIncomingContext(ctx, "anki-access-token")
	if len(raw) != 1 {
		return nil, errors.New("no token")
	}
	var old token.Claims
	if _, err := jwt.ParseWithClaims(raw[0], &old, func(*jwt.Token) (any, error) { return &s.key.PublicKey, nil }, jwt.WithValidMethods([]string{"ES256"})); err != nil {
		return nil, err
	}
	var user string
	if err := s.pool.QueryRow(ctx, `SELECT user_id FROM bare_owner WHERE thing = $1`, old.RequestorID).Scan(&user); err != nil {
		return nil, err
	}
	next := bareClaims(thing.ID(old.RequestorID), user)
	now := time.Now()
	if _, err := s.pool.Exec(ctx, `INSERT INTO bare_token (id, thing, issued_at, expires_at) VALUES ($1, $2, $3, $4)`, next.TokenID, next.RequestorID, now, now.Add(24*time.Hour)); err != nil {
		return nil, err
	}
	text, err := s.sign(next)
	return &tokenpb.RefreshTokenResponse{Data: &tokenpb.TokenBundle{Token: text}}, err
}
