package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kennel/cloud/identity/consent"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// dataCollection is the account setting that consent is read from, in any case (VEC-DOC-05).
const dataCollection = "data_collection"

// Allowed reports whether events of a robot may be kept now (VEC-FLE-06, VEC-DAS-08); a later answer may differ, unlike the answer of Hold.
//
// With an owner: the value of DATA_COLLECTION in the owner's account settings, and no if it is absent (VEC-DOC-05: default false) or cannot be
// read. Without an owner: yes. There is no person whose life the events tell; a robot has a profile without an account (VEC-TOK-09), and the
// events of one that is not set up yet are needed most. The robot decides the same before it has an owner.
func (s *Service) Allowed(ctx context.Context, id thing.ID) (bool, error) {
	t, err := s.Store.Current(ctx, id)
	if err != nil && !errors.Is(err, ErrNone) {
		return false, fmt.Errorf("owner of %s: %w", id, err)
	}
	return s.consent(ctx, t.Account)
}

// consent returns an account's consent; "" means no account.
func (s *Service) consent(ctx context.Context, account string) (bool, error) {
	if account == "" {
		return true, nil
	}
	docs, err := s.Docs.OfAccounts(ctx, jdocs.AccountSettings, []string{account})
	return consents(docs[account]), err
}

// Hold is a consent.Ask.
func (s *Service) Hold(ctx context.Context, ids ...thing.ID) (consent.Hold, error) {
	h, err := s.Store.Hold(ctx, ids)
	if err != nil {
		return consent.Hold{}, fmt.Errorf("hold owners: %w", err)
	}
	var accounts []string
	for _, p := range h.Permits {
		if p.Account != "" {
			accounts = append(accounts, p.Account)
		}
	}
	docs := map[string]string{}
	if len(accounts) > 0 {
		docs, err = s.Docs.OfAccounts(ctx, jdocs.AccountSettings, accounts) // after the Hold began: a change that it does not see is not acknowledged before the Hold ends
	}
	if err != nil {
		h.Release()
		return consent.Hold{}, err
	}
	for id, p := range h.Permits {
		p.Allowed = p.Account == "" || consents(docs[p.Account])
		h.Permits[id] = p
	}
	return h, nil
}

// consents reads the document. Where it says so twice in different case, one no is a no.
func consents(doc string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(doc), &fields) != nil {
		return false
	}
	said := false
	for name, v := range fields {
		if strings.EqualFold(name, dataCollection) {
			if string(v) != "true" {
				return false
			}
			said = true
		}
	}
	return said
}
