"""M. A. U. Nasir et al., The Power of Both Choices: partial key grouping."""
