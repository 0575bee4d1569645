// Package accounttest makes the services of package account on a test's database.
package accounttest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account"
	"kennel/cloud/identity/account/accounthash"
	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/account/audit"
	"kennel/infra/pg/pgtest"
	"kennel/infra/ratelimit"
	"kennel/infra/secretbox"
)

// Accounts are the services that need no letters.
type Accounts struct {
	*account.SignIn
	*account.People
	Operators *account.Operators
	Passkeys  *account.Passkeys
	Second    *account.Second
	Audit     *audit.Log
	Store     *accountpg.Store
}

// New returns them, with a fast hasher and 1000 attempts for each address. Changes to the configuration are optional.
func New(t testing.TB, pool *pgxpool.Pool, change ...func(*account.SignInConfig)) Accounts {
	t.Helper()
	a := Accounts{Store: accountpg.New(pool)}
	cfg := account.SignInConfig{Store: a.Store, Attempts: a.Store, Hasher: accounthash.NewAt(accounthash.Cost{Memory: 64, Passes: 1}), ByAddr: ratelimit.NewByAddr(time.Hour, 1000),
		Secret: []byte("secret of all processes of a test")}
	for _, c := range change {
		c(&cfg)
	}
	a.Audit = audit.New(a.Store, cfg.Now)
	cfg.Audit = a.Audit
	var err error
	if a.SignIn, err = account.NewSignIn(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	a.People = account.NewPeople(a.SignIn, a.Store)
	a.Operators = account.NewOperators(a.SignIn, a.People, a.Store, nil)
	a.Passkeys = account.NewPasskeys(a.SignIn, a.Store)
	a.Second = account.NewSecond(a.SignIn, a.Store, secretbox.New().For("test"), "Kennel")
	return a
}

// FillAudit makes a database refuse every new line of the audit log as it does when its disk is full; the returned function ends that.
func FillAudit(t testing.TB, pool *pgxpool.Pool) (empty func()) {
	t.Helper()
	return pgtest.Refuse(t, pool, pgtest.DiskFull, "account_audit")
}

// WithLetters returns the services that send letters. Privacy gets the store and otherwise the given configuration.
func (a Accounts) WithLetters(t testing.TB, cfg account.LettersConfig, privacy account.PrivacyConfig) Owners {
	t.Helper()
	o := Owners{}
	var err error
	if cfg.Store == nil {
		cfg.Store = a.Store
	}
	if o.Letters, err = account.NewLetters(a.People, cfg); err != nil {
		t.Fatal(err)
	}
	o.Apps = account.NewApps(o.Letters, a.Store, 0)
	privacy.Store = a.Store
	if o.Privacy, err = account.NewPrivacy(a.People, a.Passkeys, privacy); err != nil {
		t.Fatal(err)
	}
	return o
}

// Owners are the services for owners, with letters.
type Owners struct {
	Letters *account.Letters
	Apps    *account.Apps
	Privacy *account.Privacy
}
