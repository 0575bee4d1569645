package token

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kennel/infra/thing"
)

// tokenType is the only kind there is: a robot that acts for its owner.
const tokenType = "user+robot"

// Claims holds the claims of an access token, in the form the original robots insist on: every one a string, also the times (RFC 3339), and
// permissions that may be null. A number where a string belongs makes the robot drop the token; here it is refused.
type Claims struct {
	TokenID     string          `json:"token_id"`
	TokenType   string          `json:"token_type"`
	RequestorID string          `json:"requestor_id"` // the thing
	UserID      string          `json:"user_id"`      // the owner's account; empty makes the robot delete its token file
	IssuedAt    string          `json:"iat"`
	Expires     string          `json:"expires"`
	Permissions json.RawMessage `json:"permissions"`
}

var _ jwt.Claims = Claims{}

// GetExpirationTime implements jwt.Claims. The standard name of this claim is another: without this method a token would count as one that
// never expires.
func (c Claims) GetExpirationTime() (*jwt.NumericDate, error) { return date("expires", c.Expires) }

// GetIssuedAt implements jwt.Claims.
func (c Claims) GetIssuedAt() (*jwt.NumericDate, error) { return date("iat", c.IssuedAt) }

// GetNotBefore implements jwt.Claims: there is no such claim.
func (Claims) GetNotBefore() (*jwt.NumericDate, error) { return nil, nil }

// GetIssuer implements jwt.Claims: there is no such claim.
func (Claims) GetIssuer() (string, error) { return "", nil }

// GetSubject implements jwt.Claims.
func (c Claims) GetSubject() (string, error) { return c.UserID, nil }

// GetAudience implements jwt.Claims: there is no such claim.
func (Claims) GetAudience() (jwt.ClaimStrings, error) { return nil, nil }

func date(name, text string) (*jwt.NumericDate, error) {
	if text == "" {
		return nil, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: want a time as in RFC 3339", jwt.ErrTokenInvalidClaims, name)
	}
	return jwt.NewNumericDate(t), nil
}

// Access is a token that was checked: who may act for whom, and until when.
type Access struct {
	ID      string // of the token
	Thing   thing.ID
	User    string // account id
	Issued  time.Time
	Expires time.Time
}

// Claims returns the claims of a token; times are whole seconds, which every reader of RFC 3339 takes.
func (a Access) Claims() Claims {
	return Claims{TokenID: a.ID, TokenType: tokenType, RequestorID: string(a.Thing), UserID: a.User,
		IssuedAt: a.Issued.UTC().Format(time.RFC3339), Expires: a.Expires.UTC().Format(time.RFC3339)}
}

// access reads the claims of a token whose signature is good.
func (c Claims) access() (Access, error) {
	id, err := thing.Parse(c.RequestorID)
	if err != nil {
		return Access{}, fmt.Errorf("%w: requestor_id: %w", jwt.ErrTokenInvalidClaims, err)
	}
	if c.TokenType != tokenType {
		return Access{}, fmt.Errorf("%w: token_type %.40q: want %s", jwt.ErrTokenInvalidClaims, c.TokenType, tokenType)
	}
	if !IsID(c.TokenID) {
		return Access{}, fmt.Errorf("%w: token_id: want a UUID", jwt.ErrTokenInvalidClaims)
	}
	if !isUser(c.UserID) {
		return Access{}, fmt.Errorf("%w: user_id: want an account id", jwt.ErrTokenInvalidClaims)
	}
	issued, err := c.GetIssuedAt()
	if err != nil {
		return Access{}, err
	}
	expires, err := c.GetExpirationTime()
	if err != nil {
		return Access{}, err
	}
	if issued == nil || expires == nil {
		return Access{}, fmt.Errorf("%w: want iat and expires", jwt.ErrTokenRequiredClaimMissing)
	}
	return Access{ID: c.TokenID, Thing: id, User: c.UserID, Issued: issued.Time, Expires: expires.Time}, nil
}
