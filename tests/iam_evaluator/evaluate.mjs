// Asks the evaluator for one batch after the other: a line of JSON in, a line of JSON out, until the input ends.
//
// In:  {"policies": {NAME: DOCUMENT}, "requests": [REQUEST]}; policies stay known for later batches, by their names.
//      REQUEST: {"principal": ARN | SERVICE | null (unsigned), "action", "resource", "account", "context": {KEY: VALUE},
//                "identity": [NAME], "boundary": [NAME] | null, "session": NAME | null, "resourcePolicy": NAME | null,
//                "endpoint": NAME | null, "blockPublicAccess": BOOLEAN}
// Out: {"answers": [{"result": "Allowed" | "ExplicitlyDenied" | "ImplicitlyDenied" | "Error", "by": [WHO],
//                    "ignored": [KEY], "error": TEXT | null}]}
import { createInterface } from 'node:readline'
import { createValidatedPolicy, validateEndpointPolicy, validateIdentityPolicy, validateResourcePolicy } from '@cloud-copilot/iam-policy'
import { anonymousPrincipal, runSimulation } from '@cloud-copilot/iam-simulate'

const known = new Map() // document by name
const validated = new Map() // the same, checked once for each use: most of the time would go into checking them again

// The evaluator knows no context key that ends in a name of the caller's choice after a colon, and ignores it. KMS has one,
// kms:EncryptionContext:<name>: both sides, policies and requests, call it by a key of the same kind that it does know.
// So with the claims of an EKS cluster's tokens, oidc.eks.<region>.amazonaws.com/id/<id>:sub and :aud.
function withKnownKeys(object) {
  const text = JSON.stringify(object).replace(/"(oidc\.eks\.[\w.-]+\/id\/\w+:(?:aud|sub))":/g, '"aws:RequestTag/$1":')
  return JSON.parse(text.replace(/"kms:EncryptionContext:([^"]+)":/gi, '"aws:RequestTag/kms:EncryptionContext:$1":'))
}

function named(name, check) {
  const key = `${check.name} ${name}`
  if (!validated.has(key)) {
    if (!known.has(name)) throw new Error(`no policy is called ${name}`)
    validated.set(key, createValidatedPolicy(known.get(name), check))
  }
  return { name, policy: validated.get(key) }
}

function all(names, check) {
  return names.map((name) => named(name, check))
}

// Which policies decided: those that blocked what others allow, or those that hold a statement that denies.
function deciders(analysis) {
  if (analysis.blockedBy?.length) return analysis.blockedBy
  const parts = { identity: analysis.identityAnalysis, resource: analysis.resourceAnalysis, vpce: analysis.endpointAnalysis }
  return Object.entries(parts).flatMap(([name, part]) => (part?.denyStatements?.length ? [name] : []))
}

async function answer(request) {
  const simulation = {
    request: {
      principal: request.principal ?? anonymousPrincipal,
      action: request.action,
      resource: { resource: request.resource, accountId: request.account },
      contextVariables: withKnownKeys(request.context)
    },
    identityPolicies: all(request.identity, validateIdentityPolicy),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    additionalSettings: { s3: { blockPublicAccess: request.blockPublicAccess ?? false } }
  }
  if (request.boundary) simulation.permissionBoundaryPolicies = all(request.boundary, validateIdentityPolicy)
  if (request.session) simulation.sessionPolicy = named(request.session, validateIdentityPolicy).policy
  if (request.resourcePolicy) simulation.resourcePolicy = named(request.resourcePolicy, validateResourcePolicy).policy
  if (request.endpoint) simulation.vpcEndpointPolicies = all([request.endpoint], validateEndpointPolicy)
  const said = await runSimulation(simulation, {})
  if (said.resultType === 'error') return { result: 'Error', by: [], ignored: [], error: JSON.stringify(said.errors) }
  const results = said.resultType === 'single' ? [said.result] : said.results
  return {
    result: said.overallResult,
    by: [...new Set(results.flatMap((one) => deciders(one.analysis)))],
    ignored: [...new Set(results.flatMap((one) => one.ignoredContextKeys))],
    error: null
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const batch = JSON.parse(line)
  for (const [name, document] of Object.entries(batch.policies)) known.set(name, withKnownKeys(document))
  validated.clear()
  const answers = []
  for (const request of batch.requests) {
    answers.push(await answer(request).catch((error) => ({ result: 'Error', by: [], ignored: [], error: String(error) })))
  }
  process.stdout.write(JSON.stringify({ answers }) + '\n')
}
