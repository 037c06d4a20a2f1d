import {
  AssignTag,
  type Context,
  evalToken,
  isFalsy,
  type Template,
  toValue,
  toValueSync,
  Value,
} from 'liquidjs';

/**
 * Makes parsed templates ask for no more names than they need. Liquid evaluates what stands after `default:`
 * even where it is not used, and lets `assign` pass over a name that is not there.
 */
export function askForNeededOnly(templates: readonly Template[]): void {
  for (const template of templates) {
    for (const argument of template.arguments?.() ?? []) {
      if (!(argument instanceof Value)) continue;
      if (template instanceof AssignTag) insist(argument);
      makeDefaultsLazy(argument);
    }
    const children = template.children?.(false, true);
    if (children) askForNeededOnly(toValueSync(children) as Template[]);
  }
}

function insist(value: Value): void {
  const evaluate = value.value.bind(value);
  value.value = (context) => evaluate(context, false);
}

function makeDefaultsLazy({ filters }: Value): void {
  filters.forEach((filter, i) => {
    if (filter.name !== 'default') return;
    const [fallback] = filter.args;
    if (fallback === undefined || Array.isArray(fallback)) return;
    const allowsFalse = filter.args.some((arg) => Array.isArray(arg) && arg[0] === 'allow_false');
    const hasAnother = filters[i + 1]?.name === 'default';
    filter.render = function* (value: unknown, context: Context) {
      const present = allowsFalse && toValue(value) === false ? true : isPresent(value, context);
      return present ? value : yield evalToken(fallback, context, hasAnother);
    };
  });
}

function isPresent(value: unknown, context: Context): boolean {
  if (typeof value === 'string' || Array.isArray(value)) return value.length > 0;
  return !isFalsy(value, context);
}
