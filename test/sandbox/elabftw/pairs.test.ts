import { expect } from 'vitest';
import { type Pair, testPairs } from '../pairs.js';

/*
 * What eLabFTW 5.6 answers. Sources: `measured` are observations on a live 5.6.12; the names of classes and methods are
 * those of its published source code, `tests` its own test suite.
 */

const JSON_TYPE = { 'content-type': 'application/json' };
const HTML_TYPE = { 'content-type': expect.stringMatching(/^text\/html/) };
const FORBIDDEN = 'Sorry, you are not allowed to perform that action.';
const MISSING = 'Nothing to show with this id';
const error = (code: number, message: string, description = '') => ({ code, message, description });
const untyped = { 'content-type': undefined };

const measured: Pair[] = [
  ['GET /apikeys', 401, error(401, 'Authentication required'), { send: { authorization: undefined } }],
  [
    'GET /apikeys',
    401,
    error(401, 'Authentication required', 'No corresponding API key found!'),
    { send: { authorization: 'Bearer 1-abc' }, headers: JSON_TYPE },
  ],
  ['POST /experiments', 400, 'Incorrect content-type header.', { send: untyped }],
  ['POST /experiments {}', 400, /content-type/, { send: { 'content-type': 'application/json; charset=utf-8' } }],
  ['POST /experiments {}', 201, undefined, { headers: { location: 'https://eln.invalid/api/v2/experiments/9' } }],
  ['POST /experiments', 201, undefined, { headers: HTML_TYPE, text: '' }],
  ['POST /experiments {}', 400, 'You are using a read-only key to execute a write action.', { as: 'reader' }],
  ['GET /experiments', 200, undefined, { headers: { 'set-cookie': expect.stringMatching(/^PHPSESSID=/) } }],
  ['GET /experiments/0', 200, expect.arrayContaining([expect.objectContaining({ id: 1 })])],
  ['GET /experiments/abc', 200, expect.arrayContaining([expect.objectContaining({ id: 1 })])],
  ['POST /experiments {"title":"a\\nb"}', 201, undefined, { after: ['GET /experiments/9', { title: 'a b' }] }],
  [
    'POST /experiments {"date":"2020-01-01"}',
    201,
    undefined,
    { after: ['GET /experiments/9', { date: '2026-03-04' }] },
  ],
  [
    'POST /experiments {"category":3,"status":9,"content_type":2,"canread_base":40,"canwrite_base":30}',
    201,
    undefined,
    {
      after: [
        'GET /experiments/9',
        { category: 3, status: 9, content_type: 2, canread_base: 40, canwrite_base: 30, custom_id: null },
      ],
    },
  ],
  ['PATCH /experiments/1 {"title":"x","tags":["y"],"date":"2020-01-01"}', 400, 'Invalid update target.'],
  [
    'PATCH /experiments/1 {"title":"x","tags":["y"],"date":"2020-01-01"}',
    400,
    undefined,
    { after: ['GET /experiments/1', { title: 'x', date: '2026-03-01', tags: 'pH|Buffer' }] },
  ],
  ['PATCH /experiments/1 {"date":"2024-02-30"}', 500, { code: 1292 }, { headers: JSON_TYPE }],
  ['PATCH /experiments/1 {"date":"2024-05-06T07:08:09Z"}', 500, { code: 1292 }],
  ['PATCH /experiments/1 {"date":""}', 500, { code: 1292 }],
  ['PATCH /experiments/1 {"date":null}', 500, { code: 1292 }],
  ['PATCH /experiments/1 {"metadata":{"a":1}}', 500, { code: 3140 }],
  ['PATCH /experiments/1 {"category":77,"status":88}', 200, { category: 77, status: 88 }],
  ['PATCH /experiments/1 {"canread_base":50,"canwrite_base":30}', 200, { canread_base: 50, canwrite_base: 30 }],
  ['PATCH /experiments/2 {"title":"x"}', 400, error(422, 'Only the Restore action is allowed on a deleted entity.')],
  [
    'PATCH /experiments/3 {"title":"x"}',
    400,
    error(422, 'Only the Unarchive action is allowed on an archived entity.'),
  ],
  ['GET /experiments/2', 200, { state: 3, title: 'deleted' }],
  ['GET /experiments/3', 200, { state: 2 }],
  ['PATCH /experiments/4 {"title":"x"}', 403, error(403, FORBIDDEN)],
  ['PATCH /experiments/5 {"title":"x"}', 200, { title: 'x', locked: 1, lockedby: 1 }],
  ['GET /experiments/6', 200, { title: 'theirs' }],
  ['GET /experiments/7', 403, FORBIDDEN],
  ['PATCH /experiments/8 {"title":"x"}', 400, 'This entry is being edited by Kim Colleague.'],
  ['GET /experiments?extended=title:mine&limit=5', 200, [{ id: 1 }]],
  ['GET /experiments?extended=title:delet', 200, []],
  ['GET /experiments?extended=title:delet&state=1,2,3', 200, [{ id: 2, state: 3 }]],
  ['GET /experiments?extended=extrafield:pH:%227.1%22', 200, [{ id: 1 }]],
  ['GET /experiments?extended=body:%22tex_%22', 200, [{ id: 1 }]],
  ['GET /experiments?limit=2', 200, [{}, {}]],
  ['POST /experiments/1/comments {}', 400, 'Missing comment field.'],
  ['POST /experiments/1/comments {"comment":""}', 400, 'Invalid comment.'],
  ['POST /experiments/1/comments {"comment":5}', 500, undefined, { headers: HTML_TYPE }],
  ['POST /experiments/2/comments {"comment":"x"}', 201],
  ['POST /experiments/4/comments {"comment":"x"}', 201],
  ['POST /experiments/8/comments {"comment":"x"}', 201],
  ['POST /apikeys {"name":"k","canwrite":"1"}', 500],
  ['DELETE /apikeys/77', 204],
  ['PATCH /experiments/1 {"action":"updatemetadatafield","pH":"7.4"}', 200, { metadata: /"value": "7.4"/ }],
  ['PATCH /experiments/1 {"action":"updatemetadatafield","nothing":"7.4"}', 200, { metadata: /"value": "7.1"/ }],
  ['GET /experiments/1/uploads', 200, []],
  [
    'POST /experiments/1/uploads {"action":"createfromstring","file_type":"json","real_name":"a.json","content":"{}"}',
    201,
    undefined,
    {
      headers: { location: 'https://eln.invalid/api/v2/experiments/1/uploads/1' },
      after: ['GET /experiments/1/uploads', [{ id: 1, real_name: 'a.json', filesize: 2, storage: 1, state: 1 }]],
    },
  ],
  ['POST /experiments/1/tags {"tag":"new"}', 201, undefined, { after: ['GET /experiments/1', { tags: /new/ }] }],
  ['POST /experiments/1/tags {"tag":"PH"}', 201, undefined, { after: ['GET /experiments/1', { tags: 'pH|Buffer' }] }],
];

const requests: Pair[] = [
  ['GET /experiments/1/', 200, { id: 1 }],
  ['GET /experiments/1abc', 200, { id: 1 }],
  ['GET /experiments//', 200, expect.any(Array)],
  ['GET /experiments/1/comments/', 200, [{ id: 1 }]],
  ['GET /experiments/1/comments/1/and/more', 200, { id: 1 }],
  ['POST /experiments/', 201],
  ['GET /nothing', 400, /^Invalid endpoint: available endpoints: apikeys, batch, /],
  ['GET /experiments/1/nothing', 400, /^Incorrect submodel for experiments: available models are: comments, /],
  ['POST /experiments {', 400, 'Error decoding json payload: Syntax error'],
  ['POST /experiments 0', 201],
  ['POST /experiments 5', 500],
  ['POST /experiments null', 500],
  ['POST /experiments []', 201],
  ['PATCH /experiments/1', 200, { id: 1, title: 'mine' }],
  ['PATCH /experiments/1 {}', 200, { id: 1, title: 'mine' }],
  ['PATCH /experiments/1 ["x"]', 500],
  ['PATCH /experiments {"title":"x"}', 403],
  ['PATCH /experiments/99 {"title":"x"}', 404, error(404, MISSING), { headers: JSON_TYPE, send: untyped }],
  ['GET /experiments/99/comments', 404, MISSING],
  ['PUT /experiments/1', 405, undefined, { headers: HTML_TYPE }],
  ['HEAD /experiments/1', 400, undefined, { text: '' }],
  ['HEAD /experiments/1', 405, undefined, { send: JSON_TYPE, headers: { allow: 'GET, POST, DELETE, PATCH' } }],
  ['OPTIONS /experiments', 200, undefined, { send: { authorization: undefined }, text: '' }],
  ['GET /experiments', 200, undefined, { send: { accept: 'text/html' }, headers: JSON_TYPE }],
  ['GET /apikeys', 401, undefined, { send: { authorization: 'Basic abc' } }],
  ['DELETE /apikeys/77', 204, undefined, { headers: JSON_TYPE, text: '' }],
  ['DELETE /experiments/1/comments/1', 204, undefined, { headers: JSON_TYPE, text: '' }],
];

const actions: Pair[] = [
  ['DELETE /experiments/1', 204, undefined, { text: '', after: ['GET /experiments/1', { state: 3, title: 'mine' }] }],
  [
    'DELETE /experiments/1',
    204,
    undefined,
    { headers: JSON_TYPE, after: ['GET /experiments?q=mine&state=3', [{ id: 1 }]] },
  ],
  ['DELETE /experiments/2', 204, undefined, { after: ['GET /experiments/2', { state: 3 }] }],
  ['DELETE /experiments/4', 403, FORBIDDEN],
  ['DELETE /experiments/6', 403, FORBIDDEN],
  ['DELETE /experiments/8', 204],
  ['DELETE /experiments/99', 404, MISSING],
  ['DELETE /experiments', 403],
  ['PATCH /experiments/1 {"action":"destroy"}', 200, { state: 3 }],
  ['PATCH /experiments/2 {"action":"restore"}', 200, { state: 1 }],
  ['PATCH /experiments/1 {"action":"archive"}', 200, { state: 2, locked: 1, lockedby: 1 }],
  ['PATCH /experiments/3 {"action":"unarchive"}', 200, { state: 1, locked: 0 }],
  [
    'PATCH /experiments/3 {"action":"restore"}',
    400,
    error(422, 'Only the Unarchive action is allowed on an archived entity.'),
  ],
  ['PATCH /experiments/1 {"action":"lock"}', 200, { locked: 1, lockedby: 1, locked_at: '2026-03-04 12:00:00' }],
  ['PATCH /experiments/5 {"action":"lock"}', 200, { locked: 0, lockedby: null }],
  ['PATCH /experiments/5 {"action":"forcelock"}', 200, { locked: 1 }],
  ['PATCH /experiments/5 {"action":"forceunlock"}', 200, { locked: 0 }],
  ['PATCH /experiments/4 {"action":"lock"}', 403, FORBIDDEN],
  ['PATCH /experiments/6 {"action":"lock"}', 403, FORBIDDEN],
  ['PATCH /experiments/1 {"action":"pin"}', 200, { is_pinned: 1 }],
  ['PATCH /experiments/6 {"action":"pin"}', 200, { is_pinned: 1 }],
  ['PATCH /experiments/8 {"action":"pin"}', 200, { is_pinned: 1 }],
  [
    'PATCH /experiments/1 {"action":"pin"}',
    200,
    undefined,
    { after: ['GET /experiments', [{ id: 1, is_pinned: 1 }, {}, {}, {}, {}]] },
  ],
  ['PATCH /experiments/8 {"action":"removeexclusiveeditmode"}', 200, { exclusive_edit_mode: null }],
  ['PATCH /experiments/2 {"action":"removeexclusiveeditmode"}', 200, { state: 3 }],
  ['PATCH /experiments/1 {"action":"accesskey"}', 200, { access_key: /^[0-9a-f-]{36}$/, sharelink: /&access_key=/ }],
  ['PATCH /experiments/1 {"action":"review"}', 200, { title: 'mine' }],
  ['PATCH /experiments/1 {"action":"finish"}', 400, 'Invalid action parameter.'],
  ['PATCH /experiments/1 {"action":"nonsense"}', 400, 'Invalid update target.'],
  [
    'PATCH /experiments/1 {"title":"x","action":"nonsense"}',
    400,
    undefined,
    { after: ['GET /experiments/1', { title: 'x' }] },
  ],
  ['PATCH /experiments/1 {"action":"update","title":"x"}', 400, 'Invalid update target.'],
  ['PATCH /experiments/1 {"bodyappend":"<p>more</p>"}', 200, { body: '<p>text</p><p>more</p>' }],
  ['PATCH /experiments/1 {"state":3}', 200, { state: 3 }],
  ['PATCH /experiments/1 {"state":9}', 400, /^Invalid value for enum /],
  ['PATCH /experiments/1 {"rating":4,"custom_id":12}', 200, { rating: 4, custom_id: 12 }],
  ['PATCH /experiments/1 {"custom_id":0}', 200, { custom_id: null }],
  ['PATCH /experiments/1 {"canread_is_immutable":1}', 400, { code: 422 }],
  ['PATCH /experiments/1 {"action":"setcanread","can":"{}"}', 400, 'The visibility parameter teams is wrong.'],
  ['PATCH /experiments/1 {"title":{"a":1}}', 200, { title: 'Array' }],
  [
    'POST /experiments/1 {"action":"duplicate"}',
    201,
    undefined,
    { after: ['GET /experiments/9', { title: 'mine I', tags: 'pH|Buffer', date: '2026-03-04' }] },
  ],
  ['POST /experiments/1 {"action":"bloxberg"}', 400, 'Invalid action parameter.'],
  ['POST /experiments/1 {"title":"new"}', 201, undefined, { after: ['GET /experiments/9', { title: 'new' }] }],
  ['POST /experiments {"template":5}', 404, MISSING],
  ['POST /experiments {"title":5}', 500],
  ['POST /experiments {"tags":5}', 500],
  ['POST /experiments {"tags":"one"}', 201, undefined, { after: ['GET /experiments/9', { tags: 'one' }] }],
];

const values: Pair[] = [
  ['PATCH /experiments/1 {"date":"20191231"}', 200, { date: '2019-12-31' }],
  ['PATCH /experiments/1 {"metadata":"{\\"foo\\":1}"}', 200, { metadata: '{"foo": 1}' }],
  [
    'PATCH /experiments/1 {"metadata":"{\\"long\\":[1,2],\\"b\\":\\"x\\"}"}',
    200,
    { metadata: '{"b": "x", "long": [1, 2]}' },
  ],
  ['PATCH /experiments/1 {"title":" "}', 200, { title: 'Untitled' }],
  ['POST /experiments {"body":""}', 201, undefined, { after: ['GET /experiments/9', { body: null }] }],
  ['PATCH /experiments/1 {"body":""}', 200, { body: '' }],
];

const lists: Pair[] = [
  ['GET /experiments', 200, [{ id: 8 }, { id: 6 }, { id: 5 }, { id: 4 }, { id: 1 }]],
  ['GET /experiments?order=id&sort=asc', 200, [{ id: 1 }, { id: 4 }, { id: 5 }, { id: 6 }, { id: 8 }]],
  ['GET /experiments?order=title&sort=asc&limit=2', 200, [{ title: 'locked' }, { title: 'locked by me' }]],
  ['GET /experiments?order=date&sort=asc&limit=1', 200, [{ id: 1 }]],
  ['GET /experiments?order=nonsense&sort=nonsense&limit=1', 200, [{ id: 8 }]],
  ['GET /experiments?limit=1&offset=1', 200, [{ id: 6 }]],
  ['GET /experiments?state=2', 200, [{ id: 3 }]],
  ['GET /experiments?state=9', 400, /^Invalid state parameter\. Must be one of: /],
  ['GET /experiments?state=x', 400, /^Invalid state parameter\./],
  ['GET /experiments?owner=2', 200, [{ id: 6 }]],
  ['GET /experiments?locked=1', 200, [{ id: 5 }, { id: 4 }]],
  ['GET /experiments?q=mine', 200, [{ id: 1 }]],
  ['GET /experiments?q=mine&extended=title:locked', 200, []],
  ['GET /experiments?extended=title:mine%20OR%20title:theirs', 200, [{ id: 6 }, { id: 1 }]],
  ['GET /experiments?extended=title:mine|title:theirs', 200, [{ id: 6 }, { id: 1 }]],
  ['GET /experiments?extended=title:locked%20NOT%20title:me', 200, [{ id: 4 }]],
  ['GET /experiments?extended=title:locked%20!title:me', 200, [{ id: 4 }]],
  ['GET /experiments?extended=(title:mine|title:theirs)%20author:kim', 200, [{ id: 6 }]],
  ['GET /experiments?extended=TITLE:MINE', 200, [{ id: 1 }]],
  ['GET /experiments?extended=title:s:locked', 200, [{ id: 4 }]],
  ["GET /experiments?extended=title:'by%20me'", 200, [{ id: 5 }]],
  ['GET /experiments?extended=title:"by%20\\"me"', 200, []],
  ['GET /experiments?extended=id:6', 200, [{ id: 6 }]],
  ['GET /experiments?extended=locked:yes', 200, [{ id: 5 }, { id: 4 }]],
  ['GET /experiments?extended=date:2026-03-01', 200, [{ id: 1 }]],
  ['GET /experiments?extended=date:>2026-03-01&limit=1', 200, [{ id: 8 }]],
  ['GET /experiments?extended=date:2026.02.01..20260302', 200, [{ id: 1 }]],
  ['GET /experiments?extended=extrafield:**:7.1', 200, [{ id: 1 }]],
  ['GET /experiments?extended=extrafield:PH:%25', 200, [{ id: 1 }]],
  ['GET /experiments?extended=title:"x', 400, /^Error with extended search: Line 1, Column \d+: /],
  ['GET /experiments?extended=title:""', 400, /^Error with extended search: /],
  ['GET /experiments?extended=AND', 400, /^Error with extended search: /],
];

const lacking = (name: string) => [expect.not.objectContaining({ [name]: expect.anything() })];
const bodyless: Pair[] = ['body', 'body_html', 'metadata', 'uploads', 'comments'].map((name) => [
  'GET /experiments?extended=title:mine',
  200,
  lacking(name),
]);

const parts: Pair[] = [
  [
    'GET /experiments/1/tags',
    200,
    [
      { tag: 'Buffer', tag_id: 2, is_favorite: 0 },
      { tag: 'pH', tag_id: 1, is_favorite: 0 },
    ],
  ],
  ['GET /experiments/1', 200, { tags: 'pH|Buffer', tags_id: '1,2' }],
  ['GET /experiments/1/tags/2', 200, { id: 2, tag: 'Buffer', team: 1, item_count: 1, is_favorite: 0 }],
  ['GET /experiments/1/tags/9', 404, MISSING],
  [
    'POST /experiments/1/tags {"tags":["a","b"]}',
    201,
    undefined,
    { headers: { location: /\/experiments\/1\/tags\/4$/ }, after: ['GET /experiments/1', { tags: 'pH|Buffer|a|b' }] },
  ],
  ['POST /experiments/1/tags {}', 201, undefined, { headers: { location: /\/experiments\/1\/tags\/0$/ } }],
  ['POST /experiments/4/tags {}', 201],
  ['POST /experiments/4/tags {"tag":"x"}', 403, FORBIDDEN],
  ['POST /experiments/5/tags {"tag":"x"}', 201],
  ['POST /experiments/2/tags {"tag":"x"}', 201],
  ['POST /experiments/1/tags {"tag":" | "}', 400, 'Input is too short! (minimum: 1)'],
  [
    'DELETE /experiments/1/tags',
    204,
    undefined,
    { headers: JSON_TYPE, text: '', after: ['GET /experiments/1', { tags: null }] },
  ],
  ['DELETE /experiments/1/tags/1', 204, undefined, { after: ['GET /experiments/1/tags', []] }],
  ['PATCH /experiments/1/tags/1 {"action":"unreference"}', 200, { id: 1, tags: 'Buffer' }],
  ['PATCH /experiments/4/tags/1 {"action":"unreference"}', 403, FORBIDDEN],
  ['PATCH /experiments/1/tags/1 {"action":"destroy"}', 400, 'Invalid action for tags.'],
  ['GET /experiments/1/comments/9', 404, MISSING],
  ['PATCH /experiments/1/comments/1 {}', 500],
  ['PATCH /experiments/1/comments/9 {"comment":"x"}', 404, MISSING],
  ['DELETE /experiments/1/comments', 404, MISSING],
  ['GET /experiments/1/steps', 200, []],
  ['GET /experiments/1/items_links', 200, []],
  ['POST /experiments/1/uploads {}', 400, 'Error reading file!'],
  [
    'POST /experiments/1/uploads {"action":"createfromstring","file_type":"exe","real_name":"a","content":"x"}',
    400,
    /^Invalid file_type parameter\./,
  ],
  [
    'POST /experiments/1/uploads {"action":"createfromstring","file_type":"json","real_name":"a","content":""}',
    400,
    'Cannot create file from string with empty content!',
  ],
  [
    'POST /experiments/1/uploads {"action":"createfromstring","file_type":"json","content":"x"}',
    400,
    'Cannot create an upload with an empty real_name value.',
  ],
  [
    'POST /experiments/1/uploads {"action":"createfromstring","file_type":"json","real_name":"a.php","content":"x"}',
    400,
    'PHP files are forbidden!',
  ],
  ['GET /experiments/1/uploads/9', 404, MISSING],
];

const keys: Pair[] = [
  [
    'POST /apikeys {"name":"k"}',
    201,
    undefined,
    { headers: { location: expect.stringMatching(/^https:\/\/eln\.invalid\/3-[0-9a-f]{84}3$/) } },
  ],
  [
    'POST /apikeys',
    201,
    undefined,
    {
      after: ['GET /apikeys', expect.arrayContaining([expect.objectContaining({ name: 'An API key', can_write: 0 })])],
    },
  ],
  [
    'GET /apikeys/1',
    200,
    [
      { id: 1, can_write: 1, team: 1 },
      { id: 2, can_write: 0 },
    ],
  ],
  ['PATCH /apikeys/1 {}', 400, 'No PATCH action for this endpoint!'],
  ['DELETE /apikeys', 204],
  ['DELETE /apikeys/2', 204, undefined, { after: ['GET /apikeys', [{ id: 1 }]] }],
];

testPairs('elabftw', 'measured', measured);
testPairs('elabftw', 'Apiv2Controller', requests);
testPairs('elabftw', 'AbstractEntity::patch, postAction, destroy', actions);
testPairs('elabftw', 'tests, MySQL', values);
testPairs('elabftw', 'DisplayParams, AdvancedSearchQuery', lists);
testPairs('elabftw', 'measured, issue 6797 of eLabFTW', bodyless);
testPairs('elabftw', 'Tags, TeamTags, Comments, Uploads', parts);
testPairs('elabftw', 'ApiKeys, AbstractRest', keys);
