/** Who writes in the notebook: `owner` is the user that the keys belong to. */
export type Who = 'owner' | 'colleague' | 'administrator';

export interface Person {
  readonly userid: number;
  readonly firstname: string;
  readonly lastname: string;
  readonly email: string;
}

export const PEOPLE: Readonly<Record<Who, Person>> = {
  owner: { userid: 1, firstname: 'Sam', lastname: 'Sandbox', email: 'sam@eln.invalid' },
  colleague: { userid: 2, firstname: 'Kim', lastname: 'Colleague', email: 'kim@eln.invalid' },
  administrator: { userid: 3, firstname: 'Ada', lastname: 'Admin', email: 'ada@eln.invalid' },
};

/** Nobody else ever writes here, so that an unknown number can only be the first user's. */
export function whoIs(userid: number): Who {
  if (userid === PEOPLE.colleague.userid) return 'colleague';
  return userid === PEOPLE.administrator.userid ? 'administrator' : 'owner';
}

export const personOf = (userid: number): Person => PEOPLE[whoIs(userid)];

export const fullName = ({ firstname, lastname }: Person) => `${firstname} ${lastname}`;
