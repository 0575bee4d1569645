// Package token holds the rules by which robots act for their owners (VEC-TOK-05, VEC-TOK-06, VEC-AUTH-03, VEC-AUTH-05; design section 6).
//
// A person's app gets a user session from the account service and hands it to the robot. The robot proves who it is by its certificate and
// burns the session here (Associate). It gets an access token, a JWT for the other services, and a client token, with which the app talks to
// the robot; of the latter only a salted hash is kept, in the robot's own document vic.AppTokens. The robot refreshes the access token
// before it expires, for as long as its association lasts.
//
//	associate    ends what was before: the association and every access token of it; a new owner's robot knows no earlier app either
//	reassociate  the owner logs in again: the robot keeps the access token it has, other apps keep their client tokens
//	secondary    another app of the owner's
//	refresh      a token of at most a year, expired or not, of an association that lasts, becomes a new one; a lost answer costs nothing,
//	             because the old one stays good until it expires
//	disassociate, revoke   take effect at once here, and within 2 s in every process that verifies (Revocations)
//
// Who asks for what, and must prove what:
//
//	AssociatePrimaryUser, ReassociatePrimaryUser        certificate, app key, user session
//	AssociateSecondaryClient                            certificate, app key, access token; user session in the body
//	RefreshToken, DisassociatePrimaryUser               certificate, access token
//	ListRevokedTokens                                   app key
//	RevokeFactoryCertificate, RevokeTokens              certificate of one of our services, app key
//
// Over MQTT the broker has proved the robot, and there is no app key.
//
// What a refusal answers. Peers get one text for each code; the reason goes to the recorder and the log.
//
//	certificate missing, unknown, foreign, expired,     Unauthenticated    the robot tries again in minutes, and is let in when the operator
//	  revoked; app key missing or wrong; user session                      has mended what was wrong; "connection" in its app
//	  missing, unknown, expired, used; no access token
//	access token malformed, of another algorithm or     PermissionDenied   makes the robot refresh at once, and stop if it is the refresh that
//	  key, forged, expired (for a refresh: older than                      was refused: only a new association helps then
//	  a year), of the future, of another robot,
//	  revoked, of an association that has ended
//	the user of the session is not the robot's owner    InvalidArgument    "wrong account" in the app of an original robot, which is why no
//	                                                                       other refusal of an association has this code
//	refresh of nothing; a key that names no index       InvalidArgument
//	session certificate is none                         DataLoss           "connection" in the app
//	too many requests; too many apps                    ResourceExhausted  with a pause
//	database, account service or S3 away                Unavailable        with a pause
//	message too large                                   ResourceExhausted
//
// Three things would stop an original robot for good, so they never happen (peer facts): an answer without its bundle, a refresh for S3
// credentials without them, and a claim that is not a string or an owner who is empty.
//
//	token.go     ports, Service            associate.go  what robots ask          admin.go   what operators and owners ask
//	clients.go   vic.AppTokens             keys.go       rotated signing keys     verify.go  Verifier, for every service
//	claims.go    what a token says         revocations.go  the set of the refused  appkeys.go
//	tokenpg/ storage   tokenapi/ gRPC, MQTT, HTTP   tokentest/ the original robot as a client
package token
