import { itemsOf, type Node, writtenAt } from './node.js';
import type { Condition, Step } from './path.js';

/** Everything that some steps lead to, in the order of the file. */
export function walk(steps: readonly Step[], from: readonly Node[]): readonly Node[] {
  let nodes = from;
  for (const [n, step] of steps.entries()) {
    if (nodes.length === 0) break;
    nodes = take(step, nodes, n === 0);
  }
  return nodes;
}

function take(step: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  const found = step.isDeep ? below(step, from) : rightBelow(step, from, isFirst);
  if (step.conditions.length === 0) return found;
  return found
    .flatMap((node) => itemsOf(node))
    .filter((node) => step.conditions.every((condition) => holds(condition, node)));
}

const fits = ({ name }: Node, wanted: string): boolean =>
  wanted === '*' ? !name.startsWith('@') : name === wanted;

function rightBelow({ name, place }: Step, from: readonly Node[], isFirst: boolean): readonly Node[] {
  const named = place !== undefined && from[0]?.isList ? [] : from.flatMap((node) => childrenOf(node, name));
  return place === undefined || named.length > 0 ? named : nth(place, from, isFirst);
}

/** A list has no names of its own: what is asked of it is asked of its items. */
function childrenOf(node: Node, name: string): readonly Node[] {
  if (!node.isList) return node.children.filter((child) => fits(child, name));
  return name === '*' ? node.children : node.children.flatMap((item) => childrenOf(item, name));
}

/** The n-th item of a list, from 0; in XML, the n-th of the elements of that name that stand in the same one. */
function nth(place: number, from: readonly Node[], isFirst: boolean): Node[] {
  const seen = new Map<Node | undefined, number>();
  return from.flatMap((node) => {
    if (node.isList) return node.children[place] ?? [];
    const before = seen.get(node.parent) ?? 0;
    seen.set(node.parent, before + 1);
    return before === place && !isFirst && !node.parent?.isList ? node : [];
  });
}

/** At any depth. Places within each other would be found twice, so each is looked through once. */
function below({ name }: Step, from: readonly Node[]): Node[] {
  const found: Node[] = [];
  let last = -1;
  for (const top of from) {
    if (top.order <= last) continue;
    const open = [...top.children].reverse();
    for (let node = open.pop(); node; node = open.pop()) {
      last = node.order;
      if (node.name !== '' && fits(node, name)) found.push(node);
      for (let n = node.children.length - 1; n >= 0; n--) {
        const child = node.children[n];
        if (child) open.push(child);
      }
    }
  }
  return found;
}

const holds = ({ key, value }: Condition, node: Node): boolean =>
  walk(key, [node]).some((child) => writtenAt(child)?.text.trim() === value);
