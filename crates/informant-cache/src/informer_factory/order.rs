//! In which order things begin that depend on each other: pure.

/// The positions in groups: what's in a group depends on earlier groups only. `dependencies` holds for each position
/// those that it depends on; what's no position is left out.
///
/// # Errors
/// The positions of a circle, each depending on the next and the last on the first.
pub(super) fn levels(dependencies: &[Vec<usize>]) -> Result<Vec<Vec<usize>>, Vec<usize>> {
    let mut placed = vec![false; dependencies.len()];
    let mut levels = Vec::new();
    loop {
        let settled = |position: &usize| placed.get(*position).copied().unwrap_or(true);
        let level: Vec<usize> = (0..dependencies.len())
            .filter(|position| !settled(position))
            .filter(|position| dependencies.get(*position).is_none_or(|needed| needed.iter().all(settled)))
            .collect();
        if level.is_empty() {
            break;
        }
        for position in &level {
            if let Some(placed) = placed.get_mut(*position) {
                *placed = true;
            }
        }
        levels.push(level);
    }
    match placed.iter().position(|placed| !placed) {
        None => Ok(levels),
        Some(stuck) => Err(circle(dependencies, &placed, stuck)),
    }
}

/// Follows what isn't placed from one to the next until it comes around. Each such position has such a dependency.
fn circle(dependencies: &[Vec<usize>], placed: &[bool], from: usize) -> Vec<usize> {
    let mut path = vec![from];
    loop {
        let last = path.last().copied().unwrap_or(from);
        let stuck = |position: &&usize| placed.get(**position) == Some(&false);
        let Some(next) = dependencies.get(last).and_then(|needed| needed.iter().find(stuck)) else { return path };
        if let Some(start) = path.iter().position(|known| known == next) {
            return path.split_off(start);
        }
        path.push(*next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_depend_on_comes_first_and_ties_stay_in_order() {
        let dependencies = [vec![2], vec![], vec![3], vec![], vec![2, 1]];
        assert_eq!(levels(&dependencies).unwrap(), [vec![1, 3], vec![2], vec![0, 4]]);
        assert_eq!(levels(&[]).unwrap(), Vec::<Vec<usize>>::new());
        assert_eq!(levels(&[vec![7]]).unwrap(), [vec![0]], "what isn't there isn't waited for");
    }

    #[test]
    fn a_circle_is_named_without_what_only_leads_to_it() {
        // 0 -> 1 -> 2 -> 3 -> 1, and 4 is free.
        let dependencies = [vec![1], vec![2], vec![4, 3], vec![1], vec![]];
        assert_eq!(levels(&dependencies), Err(vec![1, 2, 3]));
        assert_eq!(levels(&[vec![0]]), Err(vec![0]));
    }
}
