// Package tokens keeps what a robot proves and checks its owner with.
//
//	PERS/token/token.jwt               the access token (JWT), as the cloud signed it: the robot may act for its owner
//	data/vic-gateway/token-hashes.json the hashes of client tokens: who may talk to the robot (the document vic.AppTokens)
//
// The access token is refreshed 3 hours before it ends and whenever somebody was refused with it. A user session, which the owner's app
// brings, is exchanged for a client token; the token goes to the app once and is nowhere kept, its hash comes back with the document. The
// document of the cloud is the truth: a token that is not in it any more lets nobody in. Without a cloud the last known one applies
// (VEC-AUTH-05..08, 11, 12; VEC-TOK-05; peer facts, sections 1 and 2).
package tokens
