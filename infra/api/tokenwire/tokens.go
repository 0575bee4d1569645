// Package tokenwire holds the messages of our agent and the cloud about access tokens: the rules and names of the published service
// (infra/api/tokenpb), as JSON over MQTT requests. The broker has proved who asks, so there is no app key and no certificate in it.
//
//	req/token/associate     Associate   -> Bundle   the user becomes the owner; earlier access tokens end
//	req/token/reassociate   Reassociate -> Bundle   another login of the owner's
//	req/token/secondary     Secondary   -> Bundle   a client token for another app of the owner's
//	req/token/refresh       Refresh     -> Bundle   a new access token, temporary S3 credentials, or both
//	req/token/disassociate  Disassociate -> {}      no owner any more; tokens end
//	req/token/certificate   Certificate -> {}       the robot's SDK certificate, for clients to fetch (VEC-TOK-04, VEC-AUTH-03)
//
// A request that is asked again runs again unless the cloud still knows its answer: a refresh then makes another token, which does no harm;
// a user session is good for one association, so the second answer is a refusal and the owner logs in again.
package tokenwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Names of the requests.
const (
	Service            = "token"
	AssociateMethod    = "associate"
	ReassociateMethod  = "reassociate"
	SecondaryMethod    = "secondary"
	RefreshMethod      = "refresh"
	DisassociateMethod = "disassociate"
	CertificateMethod  = "certificate"
)

// Rights are what a program's token may be limited to, as the entries of vic.AppTokens and the robot's API name them: read what the robot measures;
// use its lights, sounds and speech; move it; see through its camera; change its settings; hear through its microphones.
var Rights = []string{"look", "talk", "move", "camera", "settings", Hear}

// Hear is the right that only a person gives, by name: an app that was let in without a list of rights has all others.
const Hear = "hear"

// MaxBody bounds each body, in bytes.
const MaxBody = 64 << 10

// Associate asks to make the user of the session the owner.
type Associate struct {
	UserSession        string `json:"user_session"`
	SessionCertificate string `json:"session_certificate,omitempty"` // PEM
	ClientName         string `json:"client_name,omitempty"`
	AppID              string `json:"app_id,omitempty"`
	SkipClientToken    bool   `json:"skip_client_token,omitempty"`
	RevokeClientTokens bool   `json:"revoke_client_tokens,omitempty"`
	GenerateSTSToken   bool   `json:"generate_sts_token,omitempty"`
	ExpirationMinutes  uint32 `json:"expiration_minutes,omitempty"` // 0: the cloud's choice
}

// Reassociate is another login of the owner's.
type Reassociate struct {
	UserSession       string `json:"user_session"`
	ClientName        string `json:"client_name,omitempty"`
	AppID             string `json:"app_id,omitempty"`
	SkipClientToken   bool   `json:"skip_client_token,omitempty"`
	GenerateSTSToken  bool   `json:"generate_sts_token,omitempty"`
	ExpirationMinutes uint32 `json:"expiration_minutes,omitempty"`
}

// Secondary asks for a client token for another app.
type Secondary struct {
	AccessToken string `json:"access_token"`
	UserSession string `json:"user_session"`
	ClientName  string `json:"client_name,omitempty"`
	AppID       string `json:"app_id,omitempty"`
}

// Refresh asks for a new access token (JWT), temporary S3 credentials (STS), or both.
type Refresh struct {
	AccessToken       string `json:"access_token"`
	JWT               bool   `json:"refresh_jwt_tokens,omitempty"`
	STS               bool   `json:"refresh_sts_tokens,omitempty"`
	ExpirationMinutes uint32 `json:"expiration_minutes,omitempty"`
}

// Disassociate ends the ownership that the access token speaks of.
type Disassociate struct {
	AccessToken string `json:"access_token"`
}

// Certificate carries the robot's SDK certificate.
type Certificate struct {
	SessionCertificate string `json:"session_certificate"` // PEM
}

// Bundle is the answer; what was not asked for is absent.
type Bundle struct {
	Token       string `json:"token,omitempty"`        // access token
	ClientToken string `json:"client_token,omitempty"` // bearer of the SDK gateway, shown only once
	STS         *STS   `json:"sts_token,omitempty"`
}

// STS is temporary credentials for S3.
type STS struct {
	AccessKeyID     string    `json:"access_key_id"`
	SecretAccessKey string    `json:"secret_access_key"`
	SessionToken    string    `json:"session_token"`
	Expiration      time.Time `json:"expiration"`
}

// Body is one of the requests.
type Body interface {
	Associate | Reassociate | Secondary | Refresh | Disassociate | Certificate
}

// Parse reads a request: one JSON object, no field that it does not have. The error does not repeat what was read: it may be a secret.
func Parse[B Body](b []byte) (B, error) {
	var v, none B
	if len(b) > MaxBody {
		return none, fmt.Errorf("body of %d bytes: want at most %d", len(b), MaxBody)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return none, fmt.Errorf("body at byte %d: %w", d.InputOffset(), shy(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return none, fmt.Errorf("body: data after the object at byte %d", d.InputOffset())
	}
	return v, nil
}

// shy returns err without the words it was about.
func shy(err error) error {
	var field *json.UnmarshalTypeError
	switch {
	case errors.As(err, &field):
		return fmt.Errorf("field %.40q: want %v", field.Field, field.Type)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("cut short; want a JSON object")
	}
	return errors.New("want a JSON object with the fields of this request")
}
